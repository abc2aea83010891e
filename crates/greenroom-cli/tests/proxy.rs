//! `/proxy` before upstreams that behave and upstreams that do not.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::future;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use greenroom_cli::demo::{self, Demo, Upstream};
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tower::ServiceExt;

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Serves `upstream` on this test's runtime, which ends it.
async fn start(upstream: Router) -> SocketAddr {
    let (listener, address) = listener().await;
    tokio::spawn(axum::serve(listener, upstream).into_future());
    address
}

/// Sends `response` after the first bytes of every connection, then closes it.
async fn start_raw(response: &'static [u8]) -> SocketAddr {
    let (listener, address) = listener().await;
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            let _ = connection.read(&mut [0; 4096]).await;
            let _ = connection.write_all(response).await;
        }
    });
    address
}

fn upstream(address: SocketAddr) -> Upstream {
    format!("http://{address}/status?a=b").parse().unwrap()
}

fn relay(address: SocketAddr) -> Router {
    let upstream = Some(upstream(address));
    demo::router(Demo { upstream })
}

fn impatient_relay(address: SocketAddr) -> Router {
    let upstream = Some(upstream(address).with_timeout(Duration::from_millis(500)));
    demo::router(Demo { upstream })
}

async fn call(relay: Router, request: Request<Body>) -> Response {
    let Ok(response) = relay.oneshot(request).await;
    response
}

fn get(target: &str) -> Request<Body> {
    Request::get(target).body(Body::empty()).unwrap()
}

async fn text(response: Response) -> String {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test]
async fn only_the_configured_target_is_fetched() {
    let seen = async |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
        let host = headers["host"].to_str().unwrap().to_owned();
        format!("{method} {uri} {host} {}", body.len())
    };
    let address = start(Router::new().fallback(seen)).await;
    let request = Request::get("/proxy?url=http://192.0.2.1/")
        .header("host", "192.0.2.1")
        .header("content-length", "3")
        .body(Body::from("abc"))
        .unwrap();
    let response = call(relay(address), request).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(text(response).await, format!("GET /status?a=b {address} 0"));
}

#[tokio::test]
async fn end_to_end_fields_pass_and_hop_by_hop_fields_do_not() {
    let upstream = async |headers: HeaderMap| {
        assert_eq!(headers["accept"], "text/plain");
        assert_eq!(headers["via"], "1.1 greenroom");
        assert!(!headers.contains_key("x-secret") && !headers.contains_key("te"));
        [
            ("connection", "x-internal"),
            ("x-internal", "1"),
            ("etag", "\"1\""),
        ]
    };
    let address = start(Router::new().fallback(upstream)).await;
    let request = Request::get("/proxy")
        .header("accept", "text/plain")
        .header("connection", "te, x-secret")
        .header("te", "trailers")
        .header("x-secret", "1")
        .body(Body::empty())
        .unwrap();
    let response = call(relay(address), request).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["etag"], "\"1\"");
    assert!(!response.headers().contains_key("x-internal"));
    assert!(!response.headers().contains_key("connection"));
}

#[tokio::test]
async fn status_and_length_are_the_upstreams() {
    let upstream = async || (StatusCode::IM_A_TEAPOT, "short and stout");
    let address = start(Router::new().fallback(upstream)).await;
    let response = call(relay(address), get("/proxy")).await;
    assert_eq!(response.status(), StatusCode::IM_A_TEAPOT);
    assert_eq!(response.headers()["content-length"], "15");
    assert_eq!(text(response).await, "short and stout");
}

#[tokio::test]
async fn first_piece_passes_before_the_last_is_there() {
    let upstream = async || {
        let first = stream::iter([Ok::<_, std::io::Error>("first")]);
        Body::from_stream(first.chain(stream::pending())).into_response()
    };
    let address = start(Router::new().fallback(upstream)).await;
    let mut body = call(impatient_relay(address), get("/proxy"))
        .await
        .into_body();
    let first = body.frame().await.unwrap().unwrap();
    assert_eq!(first.into_data().unwrap(), "first");
    assert!(body.frame().await.unwrap().is_err(), "a stalled body ends");
}

#[tokio::test]
async fn refused_connection_is_a_bad_gateway() {
    let (listener, address) = listener().await;
    drop(listener);
    let response = call(relay(address), get("/proxy")).await;
    assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
    assert!(text(response).await.contains("refused"));
}

#[tokio::test]
async fn upstream_that_hangs_up_is_a_bad_gateway() {
    let address = start_raw(b"").await;
    let response = call(relay(address), get("/proxy")).await;
    assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
}

#[tokio::test]
async fn upstream_that_speaks_no_http_is_a_bad_gateway() {
    let address = start_raw(b"220 mail.example ESMTP\r\n\r\n").await;
    let response = call(relay(address), get("/proxy")).await;
    assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
}

#[tokio::test]
async fn body_that_breaks_off_is_not_taken_for_whole() {
    let address = start_raw(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc").await;
    let response = call(relay(address), get("/proxy")).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(response.into_body().collect().await.is_err());
}

#[tokio::test]
async fn silent_upstream_is_a_gateway_timeout() {
    let upstream = async || future::pending::<()>().await;
    let address = start(Router::new().fallback(upstream)).await;
    let response = call(impatient_relay(address), get("/proxy")).await;
    assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT);
    assert!(text(response).await.contains("in time"));
}
