//! `/health`: what a load balancer asks. It must answer at once, whatever the other routes do.

pub(super) async fn answer() -> &'static str {
    "ok\n"
}
