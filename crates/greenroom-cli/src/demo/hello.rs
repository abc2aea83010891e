//! `/hello`: the smallest useful answer, so that what is measured on it is the server.

pub(super) async fn answer() -> &'static str {
    "Hello, world!\n"
}
