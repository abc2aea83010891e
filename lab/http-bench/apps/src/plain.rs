//! Responses without a router, for a server's bare service.

use http::{HeaderValue, Response, header};

use crate::{ECHO, ECHO_WAIT, HELLO};

/// Responds at once.
#[must_use]
pub fn hello<B: From<&'static str>>() -> Response<B> {
    text(HELLO)
}

/// Responds after [`ECHO_WAIT`].
pub async fn echo<B: From<&'static str>>() -> Response<B> {
    tokio::time::sleep(ECHO_WAIT).await;
    text(ECHO)
}

fn text<B: From<&'static str>>(body: &'static str) -> Response<B> {
    let mut response = Response::new(B::from(body));
    let plain = HeaderValue::from_static("text/plain");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}
