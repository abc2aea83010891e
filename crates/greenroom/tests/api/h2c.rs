//! HTTP/2 with prior knowledge through an axum router, with a real client.

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::routing::{get, post};
use futures_util::future::join_all;
use futures_util::stream;
use greenroom::{ConnectionInfo, Limits, Placement, Server};
use http::{Request, StatusCode};
use hyper::body::Bytes;
use tower::service_fn;

use crate::rig::{Rig, ask, http2, within};

fn app() -> Router {
    Router::new()
        .route(
            "/echo/{text}",
            get(|Path(text): Path<String>| async { text }),
        )
        .route(
            "/length",
            post(|body: Bytes| async move { body.len().to_string() }),
        )
        .route("/panic", get(|| async { panic!("in a handler") as &str }))
}

fn request(server: &Rig, method: &str, path: &str, body: Body) -> Request<Body> {
    let request = Request::builder().method(method).uri(server.url(path));
    request.body(body).unwrap()
}

#[tokio::test]
async fn many_streams_share_a_connection() {
    within(async {
        // On a busy machine a thousand at once are more than a loop should take.
        let limits = Limits {
            loop_lag_max: Duration::MAX,
            ..Limits::default()
        };
        let server = Rig::with(
            Server::builder().limits(limits),
            app().layer(Placement::inline()),
        );
        let client = http2();
        let asked = (0..1_000).map(|number| {
            let request = request(&server, "GET", &format!("/echo/{number}"), Body::empty());
            ask(&client, request)
        });
        for (number, response) in join_all(asked).await.into_iter().enumerate() {
            assert_eq!(response, (StatusCode::OK, number.to_string()));
        }
        server.end().await;
    })
    .await;
}

#[tokio::test]
async fn limits_and_panics_get_responses_and_the_connection_goes_on() {
    within(async {
        let server = Rig::start(app());
        let client = http2();
        let long = Body::from(vec![b'l'; 3_000_000]);
        assert_eq!(
            ask(&client, request(&server, "POST", "/length", long))
                .await
                .0,
            413
        );
        let panics = request(&server, "GET", "/panic", Body::empty());
        assert_eq!(ask(&client, panics).await.0, 500);
        let short = Body::from(vec![b's'; 300_000]);
        let response = ask(&client, request(&server, "POST", "/length", short)).await;
        assert_eq!(response, (StatusCode::OK, "300000".to_owned()));
        server.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_slow_body_is_408() {
    within(async {
        let limits = Limits {
            body_grace: Duration::from_millis(200),
            ..Limits::default()
        };
        let server = Rig::with(Server::builder().limits(limits), app());
        let never = Body::from_stream(stream::pending::<Result<Bytes, axum::Error>>());
        let response = ask(&http2(), request(&server, "POST", "/length", never)).await;
        assert_eq!(response.0, 408);
        server.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_make_service_is_asked_once_for_a_connection() {
    within(async {
        let count = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&count);
        let make = service_fn(move |_: ConnectionInfo| {
            counter.fetch_add(1, Ordering::Relaxed);
            ready(Ok::<_, Infallible>(app()))
        });
        let server = Rig::start(make);
        let client = http2();
        for text in ["one", "two", "three"] {
            let request = request(&server, "GET", &format!("/echo/{text}"), Body::empty());
            assert_eq!(ask(&client, request).await, (StatusCode::OK, text.into()));
        }
        assert_eq!(count.load(Ordering::Relaxed), 1);
        server.end().await;
    })
    .await;
}
