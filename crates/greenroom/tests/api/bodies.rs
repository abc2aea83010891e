//! Bodies that are work, on a server of one loop, over HTTP/1.1 and HTTP/2.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use futures_util::{StreamExt, stream};
use greenroom::{Limits, Placement, Server, Stage};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use tokio::sync::mpsc::UnboundedReceiver;
use tower_http::compression::CompressionLayer;

use crate::rig::{Rig, ask, http1, http2, within};

const HELLOS: usize = 100;
const ITEMS: usize = 3;

type Gate = Arc<Mutex<mpsc::Receiver<()>>>;

/// Each item keeps its thread until the gate lets it pass, in place of computing for long.
fn report(gate: Gate) -> Body {
    let items = stream::iter(0..ITEMS).map(move |_| {
        let _ended = gate.lock().unwrap().recv();
        Ok::<_, Infallible>("a line of a long report\n".repeat(1_000))
    });
    Body::from_stream(items)
}

/// A server of one loop; no request is rejected because the machine is slow.
fn one_loop(router: Router) -> Rig {
    let hello = Router::new().route("/bodies/hello", get(|| async { "hello" }));
    let limits = Limits {
        loop_lag_max: Duration::MAX,
        ..Limits::default()
    };
    let stage = Stage::builder("bodies").queue_wait_max(Duration::from_mins(10));
    let placement = Placement::auto_on(&stage.build().unwrap());
    let app = hello.merge(router).layer(placement);
    Rig::with_loops(1, Server::builder().limits(limits), app)
}

async fn hello_is_served(client: &Client<HttpConnector, Body>, rig: &Rig) {
    for _ in 0..HELLOS {
        let request = Request::get(rig.url("/bodies/hello")).body(Body::empty());
        let response = ask(client, request.unwrap()).await;
        assert_eq!(response, (StatusCode::OK, "hello".into()));
    }
}

/// With HTTP/2 all requests share a connection.
async fn holds_up_nobody(path: &'static str, client: Client<HttpConnector, Body>) {
    let (release, gate) = mpsc::channel();
    let gate = Arc::new(Mutex::new(gate));
    let plain = Arc::clone(&gate);
    let compressed = Router::new()
        .route("/bodies/compressed", get(|| async { report(gate) }))
        .layer(CompressionLayer::new());
    let router = Router::new()
        .route("/bodies/plain", get(|| async { report(plain) }))
        .merge(compressed);
    let rig = one_loop(router);
    let request = Request::get(rig.url(path)).header("accept-encoding", "gzip");
    let request = request.body(Body::empty()).unwrap();
    let response = client.request(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let is_compressed = response.headers().contains_key("content-encoding");
    assert_eq!(is_compressed, path == "/bodies/compressed");
    let body = tokio::spawn(response.into_body().collect());
    for _ in 0..ITEMS {
        hello_is_served(&client, &rig).await;
        assert!(!body.is_finished());
        release.send(()).unwrap();
    }
    drop(release);
    let bytes = body.await.unwrap().unwrap().to_bytes();
    assert_eq!(bytes.starts_with(b"a line"), !is_compressed);
    rig.end().await;
}

#[tokio::test]
async fn a_stream_of_heavy_items_holds_up_nobody() {
    within(async {
        holds_up_nobody("/bodies/plain", http1()).await;
        holds_up_nobody("/bodies/plain", http2()).await;
    })
    .await;
}

#[tokio::test]
async fn a_compressed_body_holds_up_nobody() {
    within(async {
        holds_up_nobody("/bodies/compressed", http1()).await;
        holds_up_nobody("/bodies/compressed", http2()).await;
    })
    .await;
}

/// An event is delivered before the next is known.
async fn gives_each_event_at_once(client: Client<HttpConnector, Body>) {
    let (send, events) = tokio::sync::mpsc::unbounded_channel::<String>();
    let events = Arc::new(Mutex::new(Some(events)));
    let handler = || async move {
        let events = events.lock().unwrap().take().unwrap();
        Body::from_stream(stream::unfold(events, next))
    };
    let rig = one_loop(Router::new().route("/bodies/events", get(handler)));
    let request = Request::get(rig.url("/bodies/events")).body(Body::empty());
    let mut body = client.request(request.unwrap()).await.unwrap().into_body();
    for number in 0..30 {
        let event = format!("data: {number}\n\n");
        send.send(event.clone()).unwrap();
        let frame = body.frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), event);
    }
    drop(send);
    assert!(body.collect().await.unwrap().to_bytes().is_empty());
    rig.end().await;
}

type Event = Result<String, Infallible>;

async fn next(mut events: UnboundedReceiver<String>) -> Option<(Event, UnboundedReceiver<String>)> {
    let event = events.recv().await?;
    Some((Ok(event), events))
}

#[tokio::test]
async fn a_stream_of_events_gives_each_at_once() {
    within(async {
        gives_each_event_at_once(http1()).await;
        gives_each_event_at_once(http2()).await;
    })
    .await;
}
