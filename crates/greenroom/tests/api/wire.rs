//! Unusual requests as an application made with axum sees them, and their responses.

use axum::Router;
use axum::extract::{Path, RawQuery};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use hyper::ext::ReasonPhrase;

use crate::rig::{Rig, exchange, within};

async fn text(Path(text): Path<String>, RawQuery(query): RawQuery) -> String {
    format!("{text} {}", query.unwrap_or_default())
}

async fn teapot() -> Response {
    let mut response = StatusCode::IM_A_TEAPOT.into_response();
    let reason = ReasonPhrase::from_static(b"Short and stout");
    response.extensions_mut().insert(reason);
    response
}

fn app() -> Router {
    Router::new()
        .route("/text/{text}", get(text))
        .route("/unchanged", get(|| async { StatusCode::NOT_MODIFIED }))
        .route("/gone", get(|| async { StatusCode::NO_CONTENT }))
        .route("/teapot", get(teapot))
        .route("/", any(|| async { "nothing is tunnelled here" }))
}

/// Returns the response to a request on a connection of its own.
async fn response(server: &Rig, line: &str) -> String {
    let request = format!("{line}\r\nHost: test\r\nConnection: close\r\n\r\n");
    exchange(server.address, request.as_bytes()).await
}

#[tokio::test]
async fn text_that_is_not_encoded_reaches_the_extractors() {
    within(async {
        let server = Rig::start(app());
        let response = response(&server, "GET /text/caf\u{e9}?q=\u{442} HTTP/1.1").await;
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
        assert!(
            response.ends_with("\r\n\r\ncaf\u{e9} q=\u{442}"),
            "{response}"
        );
        server.end().await;
    })
    .await;
}

/// axum gives every response the length of its body, which for these says nothing.
#[tokio::test]
async fn responses_without_content_have_no_length() {
    within(async {
        let server = Rig::start(app());
        for (path, status) in [("/unchanged", 304), ("/gone", 204)] {
            for method in ["GET", "HEAD"] {
                let response = response(&server, &format!("{method} {path} HTTP/1.1")).await;
                assert!(
                    response.starts_with(&format!("HTTP/1.1 {status} ")),
                    "{response}"
                );
                let said = response.to_lowercase();
                assert!(!said.contains("content-length"), "{response}");
                assert!(response.ends_with("\r\n\r\n"), "{response}");
            }
        }
        server.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_reason_phrase_is_sent() {
    within(async {
        let server = Rig::start(app());
        let response = response(&server, "GET /teapot HTTP/1.1").await;
        assert!(
            response.starts_with("HTTP/1.1 418 Short and stout\r\n"),
            "{response}"
        );
        server.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_router_opens_no_tunnel() {
    within(async {
        let server = Rig::start(app());
        let response = response(&server, "CONNECT test:80 HTTP/1.1").await;
        assert!(response.starts_with("HTTP/1.1 404 "), "{response}");
        server.end().await;
    })
    .await;
}
