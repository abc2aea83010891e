//! The bodies of responses that are made in the application's place.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Query;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::stream;
use greenroom::{
    BodyError, Limits, OnLoops, Placement, REJECTION_BYTES_MAX, Reason, Rejected, Rejection,
    RejectionBody, RejectionDetail, Server, ServerBuilder, TextRejections,
};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, VARY};
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tower::service_fn;

use crate::rig::{Rig, ask, exchange, http2, within};

/// A body that says all of a rejection.
#[expect(
    clippy::unnecessary_wraps,
    reason = "a function of bodies may also give none"
)]
fn told(rejection: &Rejection<'_>) -> Option<RejectionBody> {
    let method = rejection.method.map_or("-", Method::as_str);
    let text = format!(
        "{}|{}|{}|{method}|{}",
        rejection.status.as_u16(),
        rejection.detail,
        rejection.retry_after.unwrap_or(0),
        rejection.path.unwrap_or("-"),
    );
    let body = RejectionBody::new("application/told", text);
    Some(body.header(VARY, HeaderValue::from_static("accept")))
}

fn telling() -> ServerBuilder {
    Server::builder().rejection_body(told)
}

fn telling_with(limits: Limits) -> ServerBuilder {
    telling().limits(limits)
}

fn busy() -> Rejected {
    Rejected {
        reason: Reason::QueueFull,
        retry_after: 7,
    }
}

async fn encoded() -> Response {
    let mut response = busy().into_response();
    let gzip = HeaderValue::from_static("gzip");
    response.headers_mut().insert(CONTENT_ENCODING, gzip);
    let mine = HeaderValue::from_static("kept");
    response.headers_mut().insert("x-mine", mine);
    response
}

fn app() -> Router {
    let inline = Router::new()
        .route(
            "/inline/panic",
            get(|| async { panic!("on the loop") as &str }),
        )
        .layer(Placement::inline());
    Router::new()
        .route("/busy", get(|| async { busy() }))
        .route("/encoded", get(encoded))
        .route("/panic", get(|| async { panic!("on a stage") as &str }))
        .route("/own", get(|| async { (StatusCode::BAD_GATEWAY, "mine") }))
        .route(
            "/library",
            get(|| async {
                let mut response = StatusCode::TOO_MANY_REQUESTS.into_response();
                let detail = RejectionDetail("slow down".into());
                response.extensions_mut().insert(detail);
                response
            }),
        )
        .route(
            "/length",
            post(|body: Bytes| async move { body.len().to_string() }),
        )
        .merge(inline)
}

/// Returns the responses on a connection of its own.
async fn response(server: &Rig, request: &str) -> String {
    exchange(server.address, request.as_bytes()).await
}

/// Asserts that the response, the last of its connection, has this status and body of [`told`].
#[track_caller]
fn assert_told(response: &str, status: u16, rest: &str) {
    let text = format!("{status}|{rest}");
    let (head, body) = response.rsplit_once("\r\n\r\n").unwrap();
    assert_eq!(body, text, "{response}");
    assert!(head.contains(&format!("HTTP/1.1 {status} ")), "{response}");
    let head = head.to_lowercase();
    for field in ["content-type: application/told", "vary: accept"] {
        assert_eq!(head.matches(field).count(), 1, "{response}");
    }
    let length = format!("content-length: {}", text.len());
    assert_eq!(head.matches(&length).count(), 1, "{response}");
}

fn request(line: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")
}

#[tokio::test]
async fn messages_that_are_no_requests() {
    within(async {
        let server = Rig::with(telling(), app());
        let fields = "X: y\r\n".repeat(101);
        for (request, status, detail) in [
            ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400, "missing Host"),
            (
                request(&format!("GET /{}", "t".repeat(9_000))),
                414,
                "request target too long",
            ),
            (
                format!("GET / HTTP/1.1\r\nHost: test\r\n{fields}\r\n"),
                431,
                "too many header fields",
            ),
            (
                "POST / HTTP/1.1\r\nHost: test\r\nExpect: more\r\n\r\n".to_owned(),
                417,
                "unknown expectation",
            ),
            (
                "GET / HTTP/2.0\r\nHost: test\r\n\r\n".to_owned(),
                505,
                "unknown HTTP version",
            ),
        ] {
            let response = response(&server, &request).await;
            assert_told(&response, status, &format!("{detail}|0|-|-"));
        }
        let head = response(&server, "HEAD / HTTP/1.1\r\n\r\n").await;
        assert!(head.contains("content-type: application/told"), "{head}");
        assert!(head.ends_with("\r\n\r\n"), "{head}");
        server.end().await;
    })
    .await;
}

#[tokio::test]
async fn clients_that_are_too_slow() {
    within(async {
        let limits = Limits {
            head_timeout: Duration::from_millis(10),
            ..Limits::default()
        };
        let server = Rig::with(telling_with(limits), app());
        let half = response(&server, "GET / HTTP/1.1\r\nHost:").await;
        assert_told(&half, 408, "request head too slow|0|-|-");
        server.end().await;
        let limits = Limits {
            body_grace: Duration::from_millis(10),
            ..Limits::default()
        };
        let server = Rig::with(telling_with(limits), app());
        let head = "POST /length?q HTTP/1.1\r\nHost: test\r\nContent-Length: 9\r\n\r\n1";
        let half = response(&server, head).await;
        assert_told(&half, 408, "the body came too slowly|0|POST|/length");
        let never = Body::from_stream(stream::pending::<Result<Bytes, axum::Error>>());
        let told = over_http2(&server, Method::POST, "/length", never).await;
        assert_eq!(
            told,
            (408, "408|the body came too slowly|0|POST|/length".into())
        );
        server.end().await;
    })
    .await;
}

#[tokio::test]
async fn bodies_that_are_malformed() {
    within(async {
        let server = Rig::with(telling(), app());
        let head = "POST /length HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n";
        let response = response(&server, &format!("{head}broken\r\n")).await;
        assert_told(&response, 400, "malformed body|0|POST|/length");
        server.end().await;
    })
    .await;
}

#[tokio::test]
async fn requests_without_memory_for_them() {
    within(async {
        let limits = Limits {
            memory_max: 1,
            ..Limits::default()
        };
        let server = Rig::with(telling_with(limits), app());
        // A head that is only half there is what the server holds, unless the other is there first.
        loop {
            let mut half = TcpStream::connect(server.address).await.unwrap();
            half.write_all(b"GET / HTTP/1.1\r\nX: ").await.unwrap();
            let response = response(&server, &request("GET /own?secret")).await;
            if response.contains(" 503 ") {
                assert_told(&response, 503, "too much is under way|1|GET|/own");
                assert!(response.contains("retry-after: 1\r\n"), "{response}");
                break;
            }
        }
        server.end().await;
    })
    .await;
}

#[tokio::test]
async fn addresses_beyond_their_rate() {
    within(async {
        let limits = Limits {
            address_requests_rate_max: 1,
            address_requests_burst: 1,
            ..Limits::default()
        };
        let server = Rig::with(telling_with(limits), app());
        // As many as the server takes in one turn, so that a second cannot pass between all.
        let many = "GET /own HTTP/1.1\r\nHost: test\r\n\r\n".repeat(50);
        let response = response(&server, &(many + &request("GET /own"))).await;
        let rejected = "429|too many requests|1|GET|/own";
        assert!(response.contains(rejected), "{response}");
        let told = over_http2(&server, Method::HEAD, "/own", Body::empty()).await;
        assert!(told.1.is_empty(), "{told:?}");
        server.end().await;
    })
    .await;
}

#[tokio::test]
async fn connections_that_are_rejected_unread() {
    within(async {
        let limits = Limits {
            address_connections_max: 1,
            ..Limits::default()
        };
        let server = Rig::with(telling_with(limits), app());
        let mut kept = TcpStream::connect(server.address).await.unwrap();
        kept.write_all(b"GET /own HTTP/1.1\r\nHost: test\r\n\r\n")
            .await
            .unwrap();
        kept.read_u8().await.unwrap();
        let rejected = response(&server, &request("GET /own")).await;
        assert_told(&rejected, 429, "too many connections|1|-|-");
        assert!(rejected.contains("retry-after: 1\r\n"), "{rejected}");
        let head = response(&server, &request("HEAD /own")).await;
        assert!(head.starts_with("HTTP/1.1 429 "), "{head}");
        assert!(head.ends_with("\r\n\r\n"), "{head}");
        drop(kept);
        server.end().await;
    })
    .await;
}

#[tokio::test]
async fn stages_that_are_busy_and_handlers_that_panic() {
    within(async {
        let server = Rig::with(telling(), app());
        let failed = "the handler failed|0|GET|/panic";
        let on_loop = "the handler failed|0|GET|/inline/panic";
        for (path, status, rest) in [
            ("/busy", 503, "overloaded|7|GET|/busy"),
            ("/panic", 500, failed),
            ("/inline/panic", 500, on_loop),
            ("/library", 429, "slow down|0|GET|/library"),
        ] {
            let response = response(&server, &request(&format!("GET {path}?secret"))).await;
            assert_told(&response, status, rest);
            let told = over_http2(&server, Method::GET, path, Body::empty()).await;
            assert_eq!(told, (status, format!("{status}|{rest}")));
        }
        let head = response(&server, &request("HEAD /busy")).await;
        assert!(head.contains("content-type: application/told"), "{head}");
        assert!(head.ends_with("\r\n\r\n"), "{head}");
        server.end().await;
    })
    .await;
}

#[tokio::test]
async fn the_connection_goes_on_and_other_fields_stay() {
    within(async {
        let server = Rig::with(telling(), app());
        let two = "GET /encoded HTTP/1.1\r\nHost: test\r\n\r\n".to_owned() + &request("GET /own");
        let responses = response(&server, &two).await;
        assert!(
            responses.contains("503|overloaded|7|GET|/encoded"),
            "{responses}"
        );
        assert!(responses.contains("x-mine: kept\r\n"), "{responses}");
        assert!(!responses.contains("gzip"), "{responses}");
        assert!(responses.ends_with("\r\n\r\nmine"), "{responses}");
        server.end().await;
    })
    .await;
}

#[tokio::test]
async fn services_that_fail() {
    within(async {
        let limits = Limits {
            body_bytes_max: 3,
            ..Limits::default()
        };
        let service = service_fn(|request: Request<Body>| async {
            assert_ne!(request.uri().path(), "/panic");
            let body = request.into_body().collect().await;
            body.map(|_| Response::new(Body::empty()))
                .map_err(|_| BodyError::TooLarge)
        });
        let server = Rig::with(telling_with(limits), OnLoops(service));
        let head = "POST /large HTTP/1.1\r\nHost: test\r\nContent-Length: 9\r\n\r\n123456789";
        let told = response(&server, head).await;
        let detail = "the body of this request could not be read";
        assert_told(&told, 413, &format!("{detail}|0|POST|/large"));
        let panicked = response(&server, &request("GET /panic")).await;
        let failed = "the handler of this request failed";
        assert_told(&panicked, 500, &format!("{failed}|0|GET|/panic"));
        let told = over_http2(&server, Method::GET, "/panic", Body::empty()).await;
        assert_eq!(told, (500, format!("500|{failed}|0|GET|/panic")));
        let large = Body::from("123456789");
        let told = over_http2(&server, Method::POST, "/large", large).await;
        assert_eq!(told, (413, format!("413|{detail}|0|POST|/large")));
        server.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_body_that_is_missing_too_long_or_panics_leaves_the_default() {
    within(async {
        let bodies = |rejection: &Rejection<'_>| match rejection.path {
            Some("/busy") => panic!("in the making of a body"),
            Some("/library") => None,
            _ => Some(RejectionBody::new(
                "text/html",
                vec![b'x'; REJECTION_BYTES_MAX],
            )),
        };
        let server = Rig::with(Server::builder().rejection_body(bodies), app());
        for (path, end) in [
            ("/busy", "\r\n\r\noverloaded\n"),
            ("/library", "\r\n\r\n"),
            ("/panic", "\r\n\r\nthe handler failed\n"),
            ("/inline/panic", "\r\n\r\nthe handler failed\n"),
        ] {
            let response = response(&server, &request(&format!("GET {path}"))).await;
            assert!(response.ends_with(end), "{response}");
        }
        let malformed = response(&server, "GET / HTTP/1.1\r\n\r\n").await;
        assert!(malformed.ends_with("\r\n\r\nmissing Host\n"), "{malformed}");
        server.end().await;
    })
    .await;
}

#[tokio::test]
async fn responses_of_the_application_are_its_own() {
    within(async {
        let server = Rig::with(telling(), app());
        for (path, end) in [("/own", "\r\n\r\nmine"), ("/nothing", "\r\n\r\n")] {
            let response = response(&server, &request(&format!("GET {path}"))).await;
            assert!(response.ends_with(end), "{response}");
        }
        server.end().await;
    })
    .await;
}

#[tokio::test]
async fn texts_of_extractors_layers_and_routers() {
    within(async {
        let html = || async {
            (
                StatusCode::BAD_GATEWAY,
                [(CONTENT_TYPE, "text/html")],
                "<p>",
            )
        };
        let app = Router::new()
            .route("/json", post(|_: Json<u8>| async { "a number" }))
            .route("/query", get(|_: Query<u8>| async { "a number" }))
            .route("/own", get(html))
            .route("/fine", get(|| async { "fine" }))
            .layer(TextRejections);
        let server = Rig::with(telling(), app);
        for (line, status, rest) in [
            ("GET /json", 405, "Method Not Allowed|0|GET|/json"),
            ("GET /nothing", 404, "Not Found|0|GET|/nothing"),
            (
                "POST /json",
                415,
                "Expected request with `Content-Type: application/json`|0|POST|/json",
            ),
        ] {
            let response = response(&server, &request(line)).await;
            assert_told(&response, status, rest);
        }
        let missing = response(&server, &request("GET /query")).await;
        assert!(
            missing.contains("\r\n\r\n400|Failed to deserialize"),
            "{missing}"
        );
        let allowed = response(&server, &request("GET /json")).await;
        assert!(
            allowed.to_lowercase().contains("allow: post\r\n"),
            "{allowed}"
        );
        for (path, end) in [("/own", "\r\n\r\n<p>"), ("/fine", "\r\n\r\nfine")] {
            let response = response(&server, &request(&format!("GET {path}"))).await;
            assert!(response.ends_with(end), "{response}");
        }
        server.end().await;
    })
    .await;
}

/// Sends a request by HTTP/2; returns the status and the text of the response.
async fn over_http2(server: &Rig, method: Method, path: &str, body: Body) -> (u16, String) {
    let request = Request::builder().method(method).uri(server.url(path));
    let (status, text) = ask(&http2(), request.body(body).unwrap()).await;
    (status.as_u16(), text)
}
