//! `/hello`: the smallest useful response, so that a measurement of it measures the server.

pub(super) async fn respond() -> &'static str {
    "Hello, world!\n"
}
