//! Lifetimes of connections, and the order of responses.

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::routing::{any, get as on_get};
use futures_util::stream;
use hyper_util::rt::TokioIo;
use tokio::io::{copy, split};

use crate::harness::Step::{
    Bytes, Close, Connect, End, Ended, Head, Leave, Note, Release, Response,
};
use crate::harness::{App, Case, Rig, ask, get, http10, raw};

pub(crate) fn cases() -> Vec<Case> {
    [persistence(), pipelining(), half_closed(), tunnels()]
        .into_iter()
        .flatten()
        .collect()
}

fn app(rig: Rig) -> Router {
    let slow = rig.clone();
    Router::new()
        .route("/", on_get(|| async { "hello" }))
        .route("/echo", any(|body: String| async move { body }))
        .route(
            "/slow",
            on_get(move || async move {
                slow.released().await;
                "slow"
            }),
        )
        .route(
            "/begun",
            on_get(move || async move {
                let _guard = Guard(rig.clone());
                rig.note("the handler has begun");
                rig.released().await;
                "done"
            }),
        )
        .route(
            "/stream",
            on_get(|| async {
                let parts = ["one", "two"].map(Ok::<_, std::convert::Infallible>);
                Body::from_stream(stream::iter(parts))
            }),
        )
}

struct Guard(Rig);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.note("the handler is gone");
    }
}

fn persistence() -> Vec<Case> {
    let one = |name, request| Case::asking(name, App::Router(app), [request]);
    vec![
        Case::asking(
            "connections/kept",
            App::Router(app),
            [get("/"), get("/"), get("/stream")],
        ),
        one(
            "connections/close",
            ask("GET /", &["Connection: close"], ""),
        ),
        one(
            "connections/close-among-others",
            ask("GET /", &["Connection: x, Close"], ""),
        ),
        one(
            "connections/close-of-a-stream",
            ask("GET /stream", &["Connection: close"], ""),
        ),
        one(
            "connections/keep-alive",
            ask("GET /", &["Connection: keep-alive"], ""),
        ),
        one("connections/http10", http10("/", &[])),
        one(
            "connections/http10-keep-alive",
            http10("/", &["Connection: keep-alive"]),
        ),
        one(
            "connections/http10-with-host",
            http10("/", &["Host: compat.test"]),
        ),
        one(
            "connections/http10-post",
            raw("POST /echo HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello"),
        ),
        one("connections/http10-head", raw("HEAD / HTTP/1.0\r\n\r\n")),
        one(
            "connections/empty-lines-first",
            raw("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        ),
        one(
            "connections/names-in-any-case",
            raw("GET / HTTP/1.1\r\nhOsT: a\r\n\r\n"),
        ),
    ]
}

fn pipelining() -> Vec<Case> {
    let steps = |name, steps| Case::steps(name, App::Router(app), steps);
    let three = "GET / HTTP/1.1\r\nHost: a\r\n\r\n\
                 POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello\
                 GET /stream HTTP/1.1\r\nHost: a\r\n\r\n";
    let slow_first = "GET /slow HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let close_first = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n\
                       GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let bad_second = "GET / HTTP/1.1\r\nHost: a\r\n\r\nnonsense\r\n\r\n";
    vec![
        steps(
            "connections/pipelined",
            vec![raw(three), Response, Response, Response, End],
        ),
        steps(
            "connections/pipelined-behind-a-slow-one",
            vec![raw(slow_first), Release, Response, Response, End],
        ),
        steps(
            "connections/pipelined-behind-close",
            vec![raw(close_first), Response, Ended],
        ),
        steps(
            "connections/nonsense-behind-a-request",
            vec![raw(bad_second), Response, Response, Ended],
        ),
        steps(
            "connections/two-at-once",
            vec![get("/"), Response, End, Connect, get("/"), Response, End],
        ),
    ]
}

fn half_closed() -> Vec<Case> {
    let steps = |name, steps| Case::steps(name, App::Router(app), steps);
    vec![
        steps("connections/nothing-sent", vec![Close, Ended]),
        steps(
            "connections/half-a-request-sent",
            vec![raw("GET / HT"), Close, Ended],
        ),
        steps(
            "connections/half-closed-while-it-waits",
            vec![get("/begun"), Note, Close, Note, Ended],
        ),
        steps(
            "connections/left-while-it-waits",
            vec![get("/begun"), Note, Leave, Note],
        ),
    ]
}

/// `CONNECT`, as a proxy serves it.
fn tunnels() -> Vec<Case> {
    let connect = || raw("CONNECT other.test:80 HTTP/1.1\r\nHost: other.test:80\r\n\r\n");
    let steps = |name, app, steps| Case::steps(name, App::Router(app), steps);
    vec![
        steps(
            "connections/tunnel",
            tunnel,
            vec![
                connect(),
                Head,
                raw("hello"),
                Bytes(5),
                raw("again"),
                Bytes(5),
                Close,
                Ended,
            ],
        ),
        steps(
            "connections/tunnel-refused",
            app,
            vec![connect(), Response, End],
        ),
    ]
}

/// A proxy that connects every client to itself.
fn tunnel(_: Rig) -> Router {
    Router::new().fallback(any(|request: Request| async move {
        let target = request.uri().to_string();
        tokio::spawn(async move {
            if let Ok(upgraded) = hyper::upgrade::on(request).await {
                let (mut reader, mut writer) = split(TokioIo::new(upgraded));
                // The client may leave at any time.
                let _left = copy(&mut reader, &mut writer).await;
            }
        });
        (StatusCode::OK, [("x-target", target)])
    }))
}
