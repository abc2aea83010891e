//! Bodies of requests: their arrival, and the client's view of a server that does not read them.

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::routing::{any, post};
use bytes::Bytes;
use futures_util::StreamExt;
use http_body_util::BodyExt;

use crate::harness::Step::{Chunk, Close, End, Ended, Head, Leave, Note, Release, Response, Rest};
use crate::harness::{App, Case, Rig, Step, ask, raw};

pub(crate) fn cases() -> Vec<Case> {
    [framed(), piecemeal(), cut_short(), expecting(), unread()]
        .into_iter()
        .flatten()
        .collect()
}

fn post_head(target: &str, fields: &str) -> Step {
    raw(format!(
        "POST {target} HTTP/1.1\r\nHost: compat.test\r\n{fields}\r\n"
    ))
}

fn app(rig: Rig) -> Router {
    let (noting, reading, waiting) = (rig.clone(), rig.clone(), rig);
    Router::new()
        .route("/echo", any(|body: Bytes| async move { body }))
        .route(
            "/stream",
            any(|body: Body| async move { Body::from_stream(body.into_data_stream()) }),
        )
        .route("/frames", any(frames))
        .route("/ignore", any(|| async { "ignored" }))
        .route(
            "/noting",
            post(move |body: Body| async move {
                let mut guard = Guard(noting.clone(), "the handler ends early");
                let mut parts = body.into_data_stream();
                while let Some(part) = parts.next().await {
                    let Ok(part) = part else {
                        return (StatusCode::IM_A_TEAPOT, "failed");
                    };
                    noting.note(format!("{} bytes", part.len()));
                }
                guard.1 = "the body ended";
                (StatusCode::OK, "noted")
            }),
        )
        .route(
            "/when-released",
            post(move |body: Body| async move {
                reading.released().await;
                body.collect().await.unwrap().to_bytes()
            }),
        )
        .route(
            "/dropped",
            post(move |_: Body| async move {
                let _guard = Guard(waiting.clone(), "the handler is dropped");
                waiting.note("the handler has begun");
                waiting.released().await;
                "not dropped"
            }),
        )
}

/// A guard that notes the end of the future that holds it.
struct Guard(Rig, &'static str);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.note(self.1);
    }
}

async fn frames(request: Request) -> String {
    let (parts, mut body) = request.into_parts();
    let (mut data, mut end) = (Vec::new(), "no trailers".to_owned());
    while let Some(frame) = body.frame().await {
        match frame.map(http_body::Frame::into_data) {
            Ok(Ok(part)) => data.extend_from_slice(&part),
            Ok(Err(frame)) => end = format!("{:?}", frame.into_trailers().unwrap()),
            Err(_) => return "failed".to_owned(),
        }
    }
    let coding = parts.headers.get("transfer-encoding");
    format!("{coding:?} {} {end}\n", data.escape_ascii())
}

fn framed() -> Vec<Case> {
    let chunked = "Transfer-Encoding: chunked\r\n";
    let with = |fields: &str, body: &str| {
        raw(format!(
            "POST /frames HTTP/1.1\r\nHost: compat.test\r\n{fields}\r\n{body}"
        ))
    };
    let one = |name, request| Case::asking(name, App::Router(app), [request]);
    vec![
        one("requests/length", ask("POST /echo", &[], "hello")),
        one("requests/no-length", ask("POST /echo", &[], "")),
        one(
            "requests/length-zero",
            ask("POST /echo", &["Content-Length: 0"], ""),
        ),
        one("requests/body-of-get", ask("GET /echo", &[], "hello")),
        one("requests/body-of-delete", ask("DELETE /echo", &[], "hello")),
        one(
            "requests/chunked",
            with(chunked, "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"),
        ),
        one("requests/chunked-nothing", with(chunked, "0\r\n\r\n")),
        one(
            "requests/chunk-extensions",
            with(chunked, "5;a=b;c=\"d e\"\r\nhello\r\n0;x\r\n\r\n"),
        ),
        one(
            "requests/chunk-size-of-zeros",
            with(chunked, "0005\r\nhello\r\n000\r\n\r\n"),
        ),
        one(
            "requests/chunk-size-in-capitals",
            with(chunked, "A\r\n0123456789\r\n0\r\n\r\n"),
        ),
        one(
            "requests/trailers",
            with(
                "Transfer-Encoding: chunked\r\nTrailer: x-sum\r\n",
                "5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n",
            ),
        ),
        one(
            "requests/coding-in-capitals",
            with("Transfer-Encoding: CHUNKED\r\n", "0\r\n\r\n"),
        ),
        one(
            "requests/echo-of-a-large-body",
            ask("POST /stream", &[], body_of(8)),
        ),
    ]
}

/// Creates a body of so many mebibytes.
fn body_of(mebibytes: usize) -> Vec<u8> {
    b"fedcba9876543210".repeat(mebibytes * 1_024 * 1_024 / 16)
}

/// Bodies that arrive in pieces.
fn piecemeal() -> Vec<Case> {
    let steps = |name, steps| Case::steps(name, App::Router(app), steps);
    let chunked = "Transfer-Encoding: chunked\r\n";
    vec![
        steps(
            "requests/parts-are-seen-as-they-come",
            vec![
                post_head("/noting", chunked),
                raw("3\r\none\r\n"),
                Note,
                raw("4\r\nfour\r\n"),
                Note,
                raw("0\r\n\r\n"),
                Note,
                Response,
                End,
            ],
        ),
        steps(
            "requests/echo-part-by-part",
            vec![
                post_head("/stream", chunked),
                raw("3\r\none\r\n"),
                Head,
                Chunk,
                raw("3\r\ntwo\r\n"),
                Chunk,
                raw("0\r\n\r\n"),
                Chunk,
                End,
            ],
        ),
        steps(
            "requests/split-anywhere",
            vec![
                raw("POST /ec"),
                raw("ho HTTP/1.1\r"),
                raw("\nHost: compat.test\r\nConte"),
                raw("nt-Length: 5\r\n\r"),
                raw("\nhe"),
                raw("llo"),
                Response,
                End,
            ],
        ),
        steps(
            "requests/read-when-released",
            vec![
                post_head("/when-released", chunked),
                raw("3\r\none\r\n"),
                Release,
                raw("3\r\ntwo\r\n0\r\n\r\n"),
                Response,
                End,
            ],
        ),
    ]
}

/// Bodies that are aborted.
fn cut_short() -> Vec<Case> {
    let steps = |name, steps| Case::steps(name, App::Router(app), steps);
    let chunked = "Transfer-Encoding: chunked\r\n";
    vec![
        steps(
            "requests/client-leaves-midway",
            vec![
                post_head("/noting", "Content-Length: 10\r\n"),
                raw("one"),
                Note,
                Leave,
                Note,
            ],
        ),
        steps(
            "requests/client-closes-midway",
            vec![
                post_head("/noting", chunked),
                raw("3\r\none\r\n"),
                Note,
                Close,
                Note,
                Response,
                Ended,
            ],
        ),
        steps(
            "requests/client-leaves-a-handler-that-waits",
            vec![
                post_head("/dropped", "Content-Length: 0\r\n"),
                Note,
                Leave,
                Note,
            ],
        ),
        steps(
            "requests/bad-chunk-midway",
            vec![
                post_head("/noting", chunked),
                raw("3\r\none\r\n"),
                Note,
                raw("x\r\n"),
                Note,
                Response,
                Ended,
            ],
        ),
    ]
}

fn expecting() -> Vec<Case> {
    let steps = |name, steps| Case::steps(name, App::Router(app), steps);
    let expect = "Expect: 100-continue\r\nContent-Length: 5\r\n";
    vec![
        steps(
            "requests/expect-and-read",
            vec![
                post_head("/echo", expect),
                Head,
                raw("hello"),
                Response,
                End,
            ],
        ),
        steps(
            "requests/expect-in-capitals",
            vec![
                post_head("/echo", "Expect: 100-Continue\r\nContent-Length: 5\r\n"),
                Head,
                raw("hello"),
                Response,
                End,
            ],
        ),
        steps(
            "requests/expect-and-ignore",
            vec![post_head("/ignore", expect), Response, End],
        ),
        steps(
            "requests/expect-and-send-at-once",
            vec![
                raw(
                    "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: \
                        5\r\n\r\nhello",
                ),
                Response,
                End,
            ],
        ),
        steps(
            "requests/expect-without-body",
            vec![
                post_head("/echo", "Expect: 100-continue\r\n"),
                Response,
                End,
            ],
        ),
        steps(
            "requests/expect-http10",
            vec![
                raw(
                    "POST /echo HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
                ),
                Response,
                End,
            ],
        ),
    ]
}

/// Responses that come before the body was read.
fn unread() -> Vec<Case> {
    let steps = |name, steps| Case::steps(name, App::Router(app), steps);
    vec![
        steps(
            "requests/unread-short",
            vec![ask("POST /ignore", &[], "hello"), Response, End],
        ),
        steps(
            "requests/unread-chunked",
            vec![
                post_head("/ignore", "Transfer-Encoding: chunked\r\n"),
                Response,
                raw("5\r\nhello\r\n0\r\n\r\n"),
                End,
            ],
        ),
        steps(
            "requests/unread-and-sent-late",
            vec![
                post_head("/ignore", "Content-Length: 5\r\n"),
                Response,
                raw("hello"),
                End,
            ],
        ),
        steps(
            "requests/unread-large",
            vec![ask("POST /ignore", &[], body_of(4)), Head, Rest, Ended],
        ),
        steps(
            "requests/unread-and-pipelined",
            vec![
                raw(
                    "POST /ignore HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET /echo \
                        HTTP/1.1\r\nHost: a\r\n\r\n",
                ),
                Response,
                Response,
                End,
            ],
        ),
    ]
}
