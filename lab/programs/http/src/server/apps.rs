//! The applications that all servers serve, so that a difference between two servers is not one
//! between two applications.

use std::collections::HashMap;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Query};
use axum::response::IntoResponse;
use axum::routing::{any, get, post};
use http::{HeaderValue, Response, header};

/// The body of every small response.
pub(crate) const HELLO: &str = "Hello, world!";
/// The body of the response to the tutorial's form.
pub(crate) const ECHO: &str = "You said: hello";
/// The time for which an echo waits before it responds.
pub(crate) const ECHO_WAIT: Duration = Duration::from_secs(2);

/// Responds without a router.
pub(crate) fn hello<B: From<&'static str>>() -> Response<B> {
    text(HELLO)
}

/// Responds after [`ECHO_WAIT`].
pub(crate) async fn echo<B: From<&'static str>>() -> Response<B> {
    tokio::time::sleep(ECHO_WAIT).await;
    text(ECHO)
}

fn text<B: From<&'static str>>(body: &'static str) -> Response<B> {
    let mut response = Response::new(B::from(body));
    let plain = HeaderValue::from_static("text/plain");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

/// As many routes, of the same shapes, as the demo application has; `/hello` and `/?field=…` are
/// the ones under load, and `/upload` where servers are told to end.
pub(crate) fn router() -> Router {
    Router::new()
        .route("/", get(form))
        .route("/hello", get(words))
        .route("/health", get(|| async { "ok" }))
        .route("/pixel.gif", get(words))
        .route("/pixel/{*path}", get(words))
        .route("/fib/{n}", get(number))
        .route("/proxy", any(words))
        .route("/ws/echo", get(words))
        .route("/upload", post(upload))
        .route("/bytes/{n}", get(number))
}

async fn words() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain")], HELLO)
}

async fn upload(_whole: Bytes) -> impl IntoResponse {
    words().await
}

async fn form(Query(fields): Query<HashMap<String, String>>) -> String {
    let Some(field) = fields.get("field") else {
        return String::from("<form><input name=\"field\"></form>");
    };
    tokio::time::sleep(ECHO_WAIT).await;
    format!("You said: {field}")
}

async fn number(Path(n): Path<u32>) -> String {
    n.to_string()
}
