//! Bodies that are work, over sockets.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll};
use std::thread;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::Uri;
use axum::routing::get;
use futures_util::{StreamExt, stream};
use greenroom_stage::placement::{STREAK_FIRST, STREAK_LIKELY};
use greenroom_stage::{Placed, Placement};
use tokio::sync::Notify;

use crate::rig::{
    Client, compute_on, get as fetch, patient, route, serve, whatever_it_takes, within,
};

type Gate = Arc<Mutex<mpsc::Receiver<()>>>;

fn gate() -> (mpsc::Sender<()>, Gate) {
    let (release, gate) = mpsc::channel();
    (release, Arc::new(Mutex::new(gate)))
}

fn thread_name() -> String {
    thread::current().name().unwrap_or("loop").to_owned()
}

/// Each item keeps its thread until the gate lets it pass.
fn blocking(gate: Gate) -> Body {
    let items = stream::iter(0..3).map(move |_| {
        let _ended = gate.lock().unwrap().recv();
        Ok::<_, Infallible>(Bytes::from(thread_name()))
    });
    Body::from_stream(items)
}

async fn start(client: &mut Client, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n");
    client.send(&request).await;
    client.receive_head().await
}

async fn hello_is_served(address: SocketAddr) {
    for _ in 0..2 * STREAK_FIRST {
        assert_eq!(fetch(address, "/bodies/hello").await.body, "hello");
    }
}

fn router() -> Router {
    Router::new().route("/bodies/hello", get(|| async { "hello" }))
}

#[tokio::test]
async fn a_body_that_blocks_holds_up_nobody_and_gives_each_frame_at_once() {
    within(async {
        let (release, gate) = gate();
        let app = router().route("/bodies/block", get(|| async move { blocking(gate) }));
        let stage = patient().threads(1..=1).build().unwrap();
        let address = serve(app.layer(whatever_it_takes(&stage))).await;
        let mut client = Client::connect(address).await;
        let head = start(&mut client, "/bodies/block").await;
        assert!(head.starts_with("http/1.1 200"), "{head}");
        for _ in 0..3 {
            hello_is_served(address).await;
            release.send(()).unwrap();
            let thread = client.receive_chunk().await.unwrap();
            assert!(thread.starts_with("serve-"), "{thread}");
        }
        assert_eq!(client.receive_chunk().await.unwrap(), "");
    })
    .await;
}

/// Their handlers do not wait for it either.
#[tokio::test]
async fn the_bodies_of_a_short_route_do_not_wait_for_what_computes() {
    within(async {
        let items = || stream::iter(["one", "two"]).map(Ok::<_, Infallible>);
        let handler = move || async move { Body::from_stream(items()) };
        let app = Router::new().route("/bodies/short", get(handler));
        let stage = patient().threads(1..=1).build().unwrap();
        let address = serve(app.layer(whatever_it_takes(&stage))).await;
        let mut client = Client::connect(address).await;
        let mut is_whole = async || {
            start(&mut client, "/bodies/short").await;
            for expected in ["one", "two", ""] {
                assert_eq!(client.receive_chunk().await.as_deref(), Some(expected));
            }
        };
        for _ in 0..STREAK_LIKELY {
            is_whole().await;
        }
        let computing = compute_on(&stage).await;
        is_whole().await;
        assert_eq!(route("/bodies/short").placed, Placed::AutoStaged);
        drop(computing);
    })
    .await;
}

/// Nothing is known of it yet, and its handler does not wait either.
#[tokio::test]
async fn the_body_of_a_new_route_does_not_wait_for_what_computes() {
    within(async {
        let items = || stream::iter(["one", "two"]).map(Ok::<_, Infallible>);
        let handler = move || async move { Body::from_stream(items()) };
        let app = Router::new().route("/bodies/new", get(handler));
        let stage = patient().threads(1..=1).build().unwrap();
        let address = serve(app.layer(whatever_it_takes(&stage))).await;
        let computing = compute_on(&stage).await;
        let mut client = Client::connect(address).await;
        start(&mut client, "/bodies/new").await;
        for expected in ["one", "two", ""] {
            assert_eq!(client.receive_chunk().await.as_deref(), Some(expected));
        }
        drop(computing);
    })
    .await;
}

/// A body with a known length, as that of a file.
struct Sized(Gate, usize);

impl HttpBody for Sized {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        let _ended = self.0.lock().unwrap().recv();
        self.1 -= 1;
        let frame = http_body::Frame::data(vec![b'x'; 50_000].into());
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.1 == 0
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(50_000 * self.1 as u64)
    }
}

#[tokio::test]
async fn one_that_knows_its_length_keeps_it_and_holds_up_nobody() {
    within(async {
        let (release, gate) = gate();
        let handler = || async move { Body::new(Sized(gate, 3)) };
        let app = router().route("/bodies/sized", get(handler));
        let address = serve(app.layer(Placement::auto_on(&patient().build().unwrap()))).await;
        let blocked = tokio::spawn(fetch(address, "/bodies/sized"));
        for _ in 0..3 {
            hello_is_served(address).await;
            release.send(()).unwrap();
        }
        let response = blocked.await.unwrap();
        assert_eq!(response.field("content-length"), Some("150000"));
        assert_eq!(response.field("transfer-encoding"), None);
    })
    .await;
}

#[tokio::test]
async fn a_body_that_waits_gives_each_event_at_once_and_comes_to_the_loop() {
    within(async {
        let (send, events) = tokio::sync::mpsc::unbounded_channel::<()>();
        let events = Arc::new(Mutex::new(Some(events)));
        let handler = || async move {
            let events = events.lock().unwrap().take().unwrap();
            let names = stream::unfold(events, |mut events| async move {
                events.recv().await?;
                Some((Ok::<_, Infallible>(thread_name()), events))
            });
            Body::from_stream(names)
        };
        let app = Router::new().route("/bodies/events", get(handler));
        let stage = patient().threads(1..=1).build().unwrap();
        let address = serve(app.layer(whatever_it_takes(&stage))).await;
        let mut client = Client::connect(address).await;
        start(&mut client, "/bodies/events").await;
        let mut threads = Vec::new();
        // Some four, if it is left waiting for each; 64, if each is there before it is asked for.
        for _ in 0..100 {
            send.send(()).unwrap();
            threads.push(client.receive_chunk().await.unwrap());
        }
        assert_eq!(threads[0], "serve-0");
        let moves = threads.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert_eq!((moves, threads[99].as_str()), (1, "loop"), "{threads:?}");
        drop(send);
        assert_eq!(client.receive_chunk().await.unwrap(), "");
    })
    .await;
}

/// The body is long until the watchdog has seen it, and its route goes back as if the handler was.
#[tokio::test]
async fn a_body_that_holds_up_a_loop_sends_its_route_back() {
    within(async {
        let handler = |uri: Uri| async move {
            let is_long = uri.query() == Some("long");
            let items = stream::iter(0..1).map(move |_| {
                while is_long && route("/bodies/turns").stalls == 0 {
                    thread::yield_now();
                }
                Ok::<_, Infallible>(thread_name())
            });
            Body::from_stream(items)
        };
        let app = Router::new().route("/bodies/turns", get(handler));
        let address = serve(app.layer(whatever_it_takes(&patient().build().unwrap()))).await;
        let mut client = Client::connect(address).await;
        let mut ask = async |path: &str| {
            start(&mut client, path).await;
            let thread = client.receive_chunk().await.unwrap();
            assert_eq!(client.receive_chunk().await.unwrap(), "");
            thread
        };
        for _ in 0..STREAK_FIRST {
            assert!(ask("/bodies/turns").await.starts_with("serve-"));
        }
        assert_eq!(
            route("/bodies/turns").poll_time.count,
            u64::from(STREAK_FIRST)
        );
        assert_eq!(route("/bodies/turns").placed, Placed::AutoInline);
        assert_eq!(ask("/bodies/turns?long").await, "loop");
        assert_eq!(route("/bodies/turns").placed, Placed::AutoStaged);
        assert!(ask("/bodies/turns").await.starts_with("serve-"));
    })
    .await;
}

/// It waits for each of its items, as a stream of events does.
#[tokio::test]
async fn a_body_that_blocks_in_place_is_whole_on_a_stage_for_good() {
    within(async {
        let handler = || async {
            let items = stream::iter(0..40).then(|_| async {
                tokio::task::yield_now().await;
                let name = tokio::task::block_in_place(thread_name);
                Ok::<_, Infallible>(Bytes::from(name))
            });
            Body::from_stream(items)
        };
        let stage = patient().threads(1..=1).build().unwrap();
        let app = Router::new().route("/bodies/in_place", get(handler));
        let address = serve(app.layer(Placement::on(&stage))).await;
        let mut client = Client::connect(address).await;
        start(&mut client, "/bodies/in_place").await;
        for _ in 0..40 {
            assert_eq!(client.receive_chunk().await.as_deref(), Some("serve-0"));
        }
        assert_eq!(client.receive_chunk().await.as_deref(), Some(""));
    })
    .await;
}

#[tokio::test]
async fn a_body_that_fails_or_panics_ends_its_response_and_nothing_else() {
    within(async {
        let received = Arc::new(Notify::new());
        let is_received = Arc::clone(&received);
        let handler = |uri: Uri| async move {
            let is_panic = uri.query() == Some("panic");
            let items = stream::unfold(0, move |number| {
                let is_received = Arc::clone(&is_received);
                async move {
                    if number == 0 {
                        return Some((Ok("first"), 1));
                    }
                    is_received.notified().await;
                    assert!(!is_panic, "on purpose");
                    Some((Err(io::Error::other("on purpose")), 2))
                }
            });
            Body::from_stream(items)
        };
        let app = router().route("/bodies/staged", get(handler.clone()));
        let stage = patient().threads(1..=1).build().unwrap();
        let app = app.layer(Placement::on(&stage));
        let inline = Router::new().route("/bodies/inline", get(handler));
        let address = serve(app.merge(inline.layer(Placement::inline()))).await;
        for place in ["staged", "inline"] {
            for how in ["error", "panic"] {
                let mut client = Client::connect(address).await;
                start(&mut client, &format!("/bodies/{place}?{how}")).await;
                assert_eq!(client.receive_chunk().await.as_deref(), Some("first"));
                received.notify_one();
                assert_eq!(client.receive_chunk().await, None, "{place} {how}");
                hello_is_served(address).await;
            }
        }
        assert_eq!(stage.status().threads.total, 1);
    })
    .await;
}
