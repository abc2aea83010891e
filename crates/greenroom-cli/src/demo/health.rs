//! `/health`: a check for load balancers. It must respond at once, even if other routes are slow.

pub(super) async fn respond() -> &'static str {
    "ok\n"
}
