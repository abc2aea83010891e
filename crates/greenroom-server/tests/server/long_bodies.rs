//! Long bodies of clients that are as fast as the server, which must not hold up short requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::stream;
use greenroom_server::Limits;
use http::Response;
use http_body::Frame;
use http_body_util::BodyExt;

use crate::acceptors::Rig;
use crate::client::{get, post};
use crate::rig::{app, local, settle, streamed, text};
use crate::torrents::{Client, Http1, Http2, Torrent};

const CLIENTS: usize = 20;
/// The loop has a round for each of them, in which at least one client has its turn.
const SHORT_REQUESTS: usize = 100;
/// The most that all clients may move while a short request is served: a few rounds of the loop. A
/// single client moved as much before the loop looked up.
const MOVED_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// Serves these clients, beside one whose requests are short.
async fn short_requests_are_served_beside<C: Client + Send + 'static>(client: impl Fn() -> C) {
    let limits = Limits {
        body_bytes_max: u64::MAX,
        ..Limits::default()
    };
    let server = app(|request| async move {
        if request.uri().path() == "/echo" {
            return Ok(Response::new(
                request.into_body().map_err(Into::into).boxed_unsync(),
            ));
        }
        let (head, mut body) = request.into_parts();
        while let Some(frame) = body.frame().await {
            frame?;
        }
        let part_bytes = match head.uri.path() {
            "/short" => return Ok(text("short")),
            "/small-parts" => 1_000,
            "/parts" => 60_000,
            _ => 64_000_000,
        };
        let part = Bytes::from(vec![0; part_bytes]);
        let parts = stream::repeat_with(move || Ok(Frame::data(part.clone())));
        Ok(streamed(parts))
    });
    let server = Rig::with(server, limits);
    let moved: Vec<Arc<AtomicUsize>> = (0..CLIENTS).map(|_| Arc::default()).collect();
    for moved in &moved {
        server.give(Torrent::new(client(), moved));
    }
    let by_client = || moved.iter().map(|moved| moved.load(Ordering::Relaxed));
    let mut short = server.connect();
    settle().await;
    let begun: Vec<usize> = by_client().collect();
    for _ in 0..SHORT_REQUESTS {
        let before: usize = by_client().sum();
        assert_eq!(short.get("/short").await.text(), "short");
        let meanwhile = by_client().sum::<usize>() - before;
        assert!(meanwhile <= MOVED_BYTES_MAX, "{meanwhile} bytes");
    }
    let each_moves = by_client().zip(begun).all(|(now, begun)| now > begun);
    assert!(each_moves, "a long body stands still");
}

fn uploads(path: &str) -> impl Fn() -> Http1 {
    let head = Bytes::from(post(path, "Content-Length: 1000000000000000\r\n"));
    move || Http1 {
        head: head.clone(),
        uploads: true,
    }
}

fn downloads(path: &str) -> impl Fn() -> Http1 {
    let head = Bytes::from(get(path));
    move || Http1 {
        head: head.clone(),
        uploads: false,
    }
}

#[tokio::test(start_paused = true)]
async fn uploads_do_not_hold_up_short_requests() {
    local(short_requests_are_served_beside(uploads("/upload"))).await;
}

#[tokio::test(start_paused = true)]
async fn bodies_that_are_sent_back_do_not_hold_up_short_requests() {
    local(short_requests_are_served_beside(uploads("/echo"))).await;
}

#[tokio::test(start_paused = true)]
async fn downloads_do_not_hold_up_short_requests() {
    local(async {
        for path in ["/small-parts", "/parts", "/large-parts"] {
            short_requests_are_served_beside(downloads(path)).await;
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn long_bodies_of_http2_do_not_hold_up_short_requests() {
    local(async {
        short_requests_are_served_beside(|| Http2::new("/upload", true)).await;
        for path in ["/small-parts", "/parts", "/large-parts"] {
            short_requests_are_served_beside(|| Http2::new(path, false)).await;
        }
    })
    .await;
}
