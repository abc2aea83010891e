//! An axum `Router` with as many routes, of the same shapes, as the demo application.

use std::collections::HashMap;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Query};
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::{any, get, post};

use crate::{ECHO_WAIT, HELLO};

/// The routes; `/hello` and `/?field=…` are the ones under load, and `/upload` where servers are
/// told to end.
pub fn router() -> Router {
    Router::new()
        .route("/", get(form))
        .route("/hello", get(hello))
        .route("/health", get(|| async { "ok" }))
        .route("/pixel.gif", get(hello))
        .route("/pixel/{*path}", get(hello))
        .route("/fib/{n}", get(number))
        .route("/proxy", any(hello))
        .route("/ws/echo", get(hello))
        .route("/upload", post(upload))
        .route("/bytes/{n}", get(number))
}

async fn hello() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain")], HELLO)
}

async fn upload(_whole: Bytes) -> impl IntoResponse {
    hello().await
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
