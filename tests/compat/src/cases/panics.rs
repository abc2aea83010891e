use std::convert::Infallible;

use axum::Router;
use axum::body::Body;
use axum::routing::{any, get as on_get};
use futures_util::{StreamExt, stream};

use crate::harness::Step::{Chunk, Connect, End, Head, Release, Response};
use crate::harness::{App, Case, Rig, Step, ask, get};

pub(crate) fn cases() -> Vec<Case> {
    let one = |name, request| Case::steps(name, App::Router(app), vec![request, Response, End]);
    vec![
        one("panics/at-once", get("/")),
        one("panics/after-a-wait", get("/late")),
        one("panics/with-a-body", ask("POST /", &[], "hello")),
        one("panics/of-an-extractor", ask("POST /body", &[], "hello")),
        Case::steps(
            "panics/others-are-served",
            App::Router(app),
            vec![get("/fine"), Response, Connect, get("/fine"), Response, End],
        ),
        Case::steps("panics/in-a-body", App::Router(app), body()),
        Case::asking(
            "panics/of-a-spawned-task",
            App::Router(app),
            [get("/spawned"), get("/fine")],
        ),
    ]
}

fn body() -> Vec<Step> {
    vec![get("/stream"), Head, Chunk, Release, Chunk]
}

fn fail() -> &'static str {
    panic!("a panic that is meant")
}

fn app(rig: Rig) -> Router {
    let late = || async {
        tokio::task::yield_now().await;
        fail()
    };
    let streamed = move || async move {
        let parts = stream::iter(0..2).then(move |number| {
            let rig = rig.clone();
            async move {
                if number > 0 {
                    rig.released().await;
                    fail();
                }
                Ok::<_, Infallible>("one")
            }
        });
        Body::from_stream(parts)
    };
    let spawned = || async {
        let spawned = tokio::spawn(async { fail() });
        format!("{:?}", spawned.await.map_err(|error| error.is_panic()))
    };
    Router::new()
        .route("/", any(|| async { fail() }))
        .route("/late", any(late))
        .route(
            "/body",
            any(|body: String| async move { format!("{body}{}", fail()) }),
        )
        .route("/fine", on_get(|| async { "fine" }))
        .route("/stream", on_get(streamed))
        .route("/spawned", on_get(spawned))
}
