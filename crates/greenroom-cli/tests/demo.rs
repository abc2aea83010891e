//! The demo application's routes, called without a server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use futures_util::stream;
use greenroom_cli::demo::{self, Demo};
use http_body_util::BodyExt;
use tokio::time::Instant;
use tower::ServiceExt;

struct Response {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Response {
    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the body is text")
    }
}

fn application() -> Router {
    demo::router(Demo::default())
}

async fn call(request: Request<Body>) -> axum::response::Response {
    let Ok(response) = application().oneshot(request).await;
    response
}

async fn send(request: Request<Body>) -> Response {
    let (parts, body) = call(request).await.into_parts();
    let body = body.collect().await.expect("the body is whole").to_bytes();
    Response {
        status: parts.status,
        headers: parts.headers,
        body,
    }
}

fn request(method: Method, target: &str, body: Body) -> Request<Body> {
    let request = Request::builder().method(method).uri(target);
    request.body(body).expect("the request is well formed")
}

async fn get(target: &str) -> Response {
    send(request(Method::GET, target, Body::empty())).await
}

#[tokio::test(start_paused = true)]
async fn page_comes_at_once_without_a_word() {
    let start = Instant::now();
    for target in ["/", "/?field=", "/?other=hello"] {
        let response = get(target).await;
        assert_eq!(response.status, StatusCode::OK);
        assert_eq!(response.headers["content-type"], "text/html; charset=utf-8");
        assert!(response.text().contains("name=\"field\""));
        assert!(!response.text().contains("You said"));
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn page_names_every_route() {
    let page = get("/").await;
    let routes = [
        "/hello",
        "/fib/{n}",
        "/block/{ms}",
        "/mixed",
        "/bytes/{n}",
        "/upload",
        "/ws/echo",
        "/proxy",
        "/pixel.gif",
        "/pixel/",
        "/health",
        "/greenroom/status",
    ];
    for route in routes {
        assert!(
            page.text().contains(&format!("<code>{route}</code>")),
            "{route}"
        );
    }
}

#[tokio::test]
async fn page_loads_nothing_and_allows_no_script() {
    let page = get("/").await;
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'"));
    assert!(!page.text().contains("<script") && !page.text().contains("src="));
}

#[tokio::test(start_paused = true)]
async fn echo_comes_after_two_seconds() {
    let start = Instant::now();
    let response = get("/?field=hello+there").await;
    let waited = start.elapsed();
    assert!(response.text().contains("You said: hello there<"));
    assert!(waited >= Duration::from_secs(2) && waited < Duration::from_millis(2_010));
}

#[tokio::test(start_paused = true)]
async fn echoes_wait_side_by_side() {
    let start = Instant::now();
    let echoes = (0..200).map(|_| tokio::spawn(get("/?field=hello")));
    for echo in echoes.collect::<Vec<_>>() {
        assert_eq!(echo.await.unwrap().status, StatusCode::OK);
    }
    assert!(start.elapsed() < Duration::from_millis(2_010));
}

#[tokio::test(start_paused = true)]
async fn echo_is_escaped() {
    let response = get("/?field=%3Cscript%3Ealert(%22%26%27)%3C/script%3E").await;
    assert!(!response.text().contains("<script"));
    assert!(!response.text().contains("(\"&"));
    let escaped = "&#60;script&#62;alert(&#34;&#38;&#39;)&#60;/script&#62;";
    assert!(response.text().contains(&format!("You said: {escaped}<")));
}

#[tokio::test]
async fn hello_is_plain_text() {
    let response = get("/hello").await;
    assert_eq!(response.text(), "Hello, world!\n");
    assert_eq!(
        response.headers["content-type"],
        "text/plain; charset=utf-8"
    );
}

#[tokio::test]
async fn health_is_ok() {
    let response = get("/health").await;
    assert_eq!((response.status, response.text()), (StatusCode::OK, "ok\n"));
}

#[tokio::test]
async fn pixel_is_a_cacheable_gif_for_everybody() {
    for target in ["/pixel.gif", "/pixel/", "/pixel/ads/banner.js?id=7"] {
        let response = get(target).await;
        assert_eq!(response.body.len(), 43, "{target}");
        assert!(response.body.starts_with(b"GIF89a") && response.body.ends_with(b";"));
        assert_eq!(response.headers["content-type"], "image/gif");
        assert_eq!(
            response.headers["cache-control"],
            "public, max-age=31536000"
        );
        assert_eq!(response.headers["access-control-allow-origin"], "*");
        assert_eq!(
            response.headers["cross-origin-resource-policy"],
            "cross-origin"
        );
        assert_eq!(response.headers["timing-allow-origin"], "*");
    }
}

#[tokio::test]
async fn fib_is_exact_decimal_text() {
    assert_eq!(get("/fib/0").await.text(), "0\n");
    assert_eq!(get("/fib/10").await.text(), "55\n");
    let largest = get("/fib/100000").await;
    assert_eq!(largest.text().trim_end().len(), 20_899);
    assert!(largest.text().starts_with("2597406934722172"));
    assert!(largest.text().ends_with("3428746875\n"));
}

#[tokio::test]
async fn block_and_mixed_say_what_they_did() {
    assert_eq!(get("/block/1").await.text(), "blocked for 1 ms\n");
    let mixed = get("/mixed?wait=0&block=1&fib=100").await;
    let said = "waited for 0 ms, blocked for 1 ms, computed the 21 digits of number 100\n";
    assert_eq!(mixed.text(), said);
}

#[tokio::test]
async fn status_tells_where_routes_run() {
    // Its routes are shown for as long as an application lives.
    let application = application();
    let health = request(Method::GET, "/health", Body::empty());
    let Ok(_response) = application.clone().oneshot(health).await;
    let status: serde_json::Value =
        serde_json::from_str(get("/greenroom/status").await.text()).unwrap();
    let routes = status["routes"].as_array().unwrap();
    let health = routes.iter().find(|route| route["path"] == "/health");
    assert_eq!(health.unwrap()["placed"], "auto_staged");
    assert_eq!(status["stages"][0]["name"], "stage");
}

#[tokio::test]
async fn numbers_out_of_range_are_refused_with_what_is_allowed() {
    let cases = [
        ("/fib/100001", "0 to 100000"),
        ("/fib/ten", "0 to 100000"),
        ("/fib/-1", "0 to 100000"),
        ("/fib/+1", "0 to 100000"),
        ("/fib/1.5", "0 to 100000"),
        ("/fib/99999999999999999999999", "0 to 100000"),
        ("/bytes/1099511627777", "0 to 1099511627776"),
        ("/bytes/x", "0 to 1099511627776"),
        ("/block/10001", "0 to 10000"),
        ("/mixed?wait=10001", "wait=10001 is too much: at most 10000"),
        (
            "/mixed?block=10001",
            "block=10001 is too much: at most 10000",
        ),
        (
            "/mixed?fib=100001",
            "fib=100001 is too much: at most 100000",
        ),
        ("/mixed?fob=1", "unknown field `fob`"),
    ];
    for (target, allowed) in cases {
        let response = get(target).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{target}");
        assert!(response.text().contains(allowed), "{target}");
    }
}

#[tokio::test]
async fn bytes_are_as_many_as_asked_for() {
    for length in [0_usize, 1, 65_536, 65_537, 1_000_000] {
        let response = get(&format!("/bytes/{length}")).await;
        assert_eq!(response.body.len(), length);
        assert_eq!(response.headers["content-length"], *length.to_string());
    }
}

#[tokio::test]
async fn head_of_the_longest_download_costs_nothing() {
    let response = send(request(Method::HEAD, "/bytes/1099511627776", Body::empty())).await;
    assert_eq!(response.headers["content-length"], "1099511627776");
    assert!(response.body.is_empty());
}

#[tokio::test]
async fn upload_is_counted_and_hashed() {
    for method in [Method::POST, Method::PUT] {
        let pieces = ["ab", "", "c"].map(Ok::<_, std::io::Error>);
        let body = Body::from_stream(stream::iter(pieces));
        let response = send(request(method, "/upload", body)).await;
        let receipt: serde_json::Value = serde_json::from_str(response.text()).unwrap();
        assert_eq!(receipt["bytes"], 3);
        let sha256_of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(receipt["sha256"], sha256_of_abc);
    }
}

#[tokio::test]
async fn upload_that_breaks_off_is_an_error() {
    let pieces = [Ok("abc"), Err(std::io::Error::other("the line went dead"))];
    let body = Body::from_stream(stream::iter(pieces));
    let response = send(request(Method::POST, "/upload", body)).await;
    assert_eq!(response.status, StatusCode::BAD_REQUEST);
    assert!(response.text().contains("the line went dead"));
}

#[tokio::test]
async fn websocket_route_wants_an_upgrade() {
    let response = get("/ws/echo").await;
    assert!(response.status.is_client_error());
}

#[tokio::test]
async fn proxy_without_an_upstream_says_how_to_get_one() {
    let response = get("/proxy").await;
    assert_eq!(response.status, StatusCode::NOT_FOUND);
    assert!(response.text().contains("--upstream"));
}

#[tokio::test]
async fn unknown_paths_and_wrong_methods_are_told_apart() {
    let response = get("/nowhere").await;
    assert_eq!(response.status, StatusCode::NOT_FOUND);
    assert!(response.text().contains("page at /"));
    let response = send(request(Method::POST, "/hello", Body::empty())).await;
    assert_eq!(response.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(response.headers["allow"], "GET,HEAD");
}
