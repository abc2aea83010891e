//! Bodies of responses: their framing, the arrival of their chunks, their end and their abort.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, TRAILER};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response};
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use axum::routing::{any, get as on_get};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http_body::Frame;
use http_body_util::StreamBody;

use crate::harness::Step::{
    Bytes as ReadBytes, Chunk, End, Head, Leave, Release, Response as Read, Rest,
};
use crate::harness::{App, Case, Rig, Step, ask, get, http10};

pub(crate) fn cases() -> Vec<Case> {
    [
        whole(),
        parts(),
        more_parts(),
        events(),
        broken(),
        trailers(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn whole() -> Vec<Case> {
    let one = |name, request| Case::asking(name, App::Router(app), [request]);
    vec![
        one("bodies/text", get("/text")),
        one("bodies/empty", get("/empty")),
        one("bodies/large", get("/large")),
        one("bodies/stream", get("/stream")),
        one("bodies/stream-of-nothing", get("/stream-of-nothing")),
        one(
            "bodies/stream-with-empty-parts",
            get("/stream-with-empty-parts"),
        ),
        one("bodies/head-of-stream", ask("HEAD /stream", &[], "")),
        one("bodies/head-of-large", ask("HEAD /large", &[], "")),
        one("bodies/large-parts", get("/large-parts")),
        one("bodies/stream-http10", http10("/stream", &[])),
        one(
            "bodies/stream-http10-keep-alive",
            http10("/stream", &["Connection: keep-alive"]),
        ),
    ]
}

fn items(parts: &'static [&'static str]) -> impl Stream<Item = Result<Bytes, Infallible>> {
    stream::iter(
        parts
            .iter()
            .map(|part| Ok(Bytes::from_static(part.as_bytes()))),
    )
}

/// Streams these chunks: the first at once, each other when the client lets the stream go on.
fn gated(rig: Rig, parts: Vec<&'static str>) -> impl Stream<Item = Result<Bytes, io::Error>> {
    stream::iter(parts.into_iter().enumerate()).then(move |(number, part)| {
        let rig = rig.clone();
        async move {
            if number > 0 {
                rig.released().await;
            }
            match part {
                "failure" => Err(io::Error::other("the stream failed")),
                part => Ok(Bytes::from_static(part.as_bytes())),
            }
        }
    })
}

fn large() -> Bytes {
    Bytes::from(b"0123456789abcdef".repeat(8 * 1_024 * 1_024 / 16))
}

fn app(rig: Rig) -> Router {
    let parts = {
        let rig = rig.clone();
        move || async move { Body::from_stream(gated(rig, vec!["one", "two", "three"])) }
    };
    let sized = {
        let rig = rig.clone();
        move || async move {
            let body = Body::from_stream(gated(rig, vec!["one", "two", "three"]));
            ([(CONTENT_LENGTH, "11")], body)
        }
    };
    let late = move || async move {
        let first = stream::once(async move {
            rig.released().await;
            Ok::<_, Infallible>("late")
        });
        Body::from_stream(first)
    };
    Router::new()
        .route("/text", on_get(|| async { "text" }))
        .route("/empty", on_get(|| async { Body::empty() }))
        .route("/large", on_get(|| async { large() }))
        .route(
            "/stream",
            on_get(|| async { Body::from_stream(items(&["one", "two", "three"])) }),
        )
        .route(
            "/stream-of-nothing",
            on_get(|| async { Body::from_stream(items(&[])) }),
        )
        .route(
            "/stream-with-empty-parts",
            on_get(|| async { Body::from_stream(items(&["", "one", "", "two", ""])) }),
        )
        .route(
            "/large-parts",
            on_get(|| async {
                let part = large().slice(..1_000_000);
                Body::from_stream(stream::iter(vec![Ok::<_, Infallible>(part); 3]))
            }),
        )
        .route("/parts", any(parts))
        .route("/sized", any(sized))
        .route("/late", any(late))
}

fn in_chunks() -> Vec<Step> {
    vec![Head, Chunk, Release, Chunk, Release, Chunk, Chunk]
}

fn in_bytes() -> Vec<Step> {
    let (three, five) = (ReadBytes(3), ReadBytes(5));
    vec![Head, three.clone(), Release, three, Release, five]
}

fn get_parts() -> Vec<Step> {
    [vec![get("/parts")], in_chunks()].concat()
}

/// Each chunk must arrive before the next is made.
fn parts() -> Vec<Case> {
    let steps = |name, steps| Case::steps(name, App::Router(app), steps);
    vec![
        steps("bodies/parts", [get_parts(), vec![End]].concat()),
        steps(
            "bodies/parts-of-known-length",
            [vec![get("/sized")], in_bytes(), vec![End]].concat(),
        ),
        steps(
            "bodies/parts-http10",
            [vec![http10("/parts", &[])], in_bytes(), vec![End]].concat(),
        ),
    ]
}

fn more_parts() -> Vec<Case> {
    let steps = |name, steps| Case::steps(name, App::Router(app), steps);
    vec![
        // The head need not wait for the body.
        steps(
            "bodies/head-before-body",
            vec![get("/late"), Head, Release, Rest, End],
        ),
        steps(
            "bodies/parts-twice",
            [get_parts(), get_parts(), vec![End]].concat(),
        ),
    ]
}

fn events() -> Vec<Case> {
    let steps = |name, steps| Case::steps(name, App::Router(sse), steps);
    vec![
        steps(
            "bodies/sse",
            [vec![get("/sse")], in_chunks(), vec![End]].concat(),
        ),
        steps(
            "bodies/sse-http10",
            vec![
                http10("/sse", &[]),
                Head,
                ReadBytes(13),
                Release,
                ReadBytes(41),
                Release,
                Rest,
                End,
            ],
        ),
        steps(
            "bodies/sse-keep-alive",
            vec![get("/quiet"), Head, Chunk, Chunk, Leave],
        ),
    ]
}

fn sse(rig: Rig) -> Router {
    let quiet = rig.clone();
    let events = move || async move {
        let events = vec![
            Event::default().data("first"),
            Event::default().event("kind").id("7").data("two\nlines"),
            Event::default()
                .comment("remark")
                .retry(Duration::from_secs(3))
                .data("last"),
        ];
        let events = stream::iter(events.into_iter().enumerate()).then(move |(number, event)| {
            let rig = rig.clone();
            async move {
                if number > 0 {
                    rig.released().await;
                }
                Ok::<_, Infallible>(event)
            }
        });
        Sse::new(events)
    };
    let quiet = move || async move {
        let event = stream::once(async move {
            quiet.released().await;
            Ok::<_, Infallible>(Event::default().data("at last"))
        });
        let often = KeepAlive::new()
            .interval(Duration::from_millis(10))
            .text("still there");
        Sse::new(event).keep_alive(often)
    };
    Router::new()
        .route("/sse", on_get(events))
        .route("/quiet", on_get(quiet))
}

/// A client must be able to tell a body that failed from one that ended.
fn broken() -> Vec<Case> {
    let steps = |name, steps| Case::steps(name, App::Router(failing), steps);
    vec![
        steps(
            "bodies/fails-midway",
            vec![get("/midway"), Head, Chunk, Release, Chunk],
        ),
        steps(
            "bodies/fails-midway-http10",
            vec![http10("/midway", &[]), Head, ReadBytes(3), Release, Rest],
        ),
        steps(
            "bodies/fails-midway-of-known-length",
            vec![get("/sized"), Head, ReadBytes(3), Release, Rest],
        ),
        steps("bodies/fails-at-once", vec![get("/at-once"), Read]),
        steps(
            "bodies/shorter-than-its-length",
            vec![get("/shorter"), Read],
        ),
        steps(
            "bodies/longer-than-its-length",
            vec![get("/longer"), Read, Step::Ended],
        ),
    ]
}

fn failing(rig: Rig) -> Router {
    let (midway, sized) = (rig.clone(), rig);
    let declared = |length: &'static str| {
        let body = Body::from_stream(items(&["one", "two"]));
        ([(CONTENT_LENGTH, length)], body)
    };
    Router::new()
        .route(
            "/midway",
            on_get(move || async move { Body::from_stream(gated(midway, vec!["one", "failure"])) }),
        )
        .route(
            "/sized",
            on_get(move || async move {
                let body = Body::from_stream(gated(sized, vec!["one", "failure"]));
                ([(CONTENT_LENGTH, "10")], body)
            }),
        )
        .route(
            "/at-once",
            on_get(|| async {
                let failure = Err::<Bytes, _>(io::Error::other("the stream failed"));
                Body::from_stream(stream::iter([failure]))
            }),
        )
        .route("/shorter", on_get(move || async move { declared("10") }))
        .route("/longer", on_get(move || async move { declared("4") }))
}

fn trailers() -> Vec<Case> {
    let one = |name, request| Case::asking(name, App::Router(trailing), [request]);
    let te = &["TE: trailers"];
    vec![
        one("bodies/trailers", ask("GET /declared", te, "")),
        one(
            "bodies/trailers-not-asked-for",
            ask("GET /declared", &[], ""),
        ),
        one(
            "bodies/trailers-not-declared",
            ask("GET /undeclared", te, ""),
        ),
        one(
            "bodies/trailers-asked-for-among-others",
            ask("GET /declared", &["TE: gzip, trailers"], ""),
        ),
        one("bodies/trailers-http10", http10("/declared", te)),
    ]
}

fn trailing(_: Rig) -> Router {
    let body = || {
        let name = HeaderName::from_static("x-checksum");
        let trailers = HeaderMap::from_iter([(name, HeaderValue::from_static("abc"))]);
        let frames = [
            Frame::data(Bytes::from_static(b"data")),
            Frame::trailers(trailers),
        ];
        Body::new(StreamBody::new(stream::iter(
            frames.map(Ok::<_, Infallible>),
        )))
    };
    let declared = move || async move {
        let mut response = Response::new(body());
        response
            .headers_mut()
            .insert(TRAILER, HeaderValue::from_static("x-checksum"));
        response
    };
    Router::new()
        .route("/declared", on_get(declared))
        .route("/undeclared", on_get(move || async move { body() }))
}
