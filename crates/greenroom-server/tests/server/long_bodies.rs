//! Long bodies of clients that are as fast as the server, which must not hold up short requests.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::stream;
use greenroom_server::Limits;
use http::Response;
use http_body::Frame;
use http_body_util::BodyExt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::acceptors::Rig;
use crate::client::{get, post};
use crate::rig::{app, local, settle, streamed, text};

const CLIENTS: usize = 20;
/// The most that all clients may move while a short request is served: a few rounds of the loop. A
/// single client moved as much before the loop looked up.
const MOVED_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// A client that sends its head, then zeros without end if it uploads; it takes all that it gets.
struct Torrent {
    head: Bytes,
    uploads: bool,
    moved: Arc<AtomicUsize>,
}

impl AsyncRead for Torrent {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.head.is_empty() {
            let now = self.head.len().min(buffer.remaining());
            buffer.put_slice(&self.head.split_to(now));
        } else if self.uploads {
            self.moved.fetch_add(buffer.remaining(), Ordering::Relaxed);
            buffer.initialize_unfilled();
            buffer.set_filled(buffer.capacity());
        } else {
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Torrent {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.moved.fetch_add(bytes.len(), Ordering::Relaxed);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Serves clients that send this head, beside one whose requests are short.
async fn short_requests_are_served_beside(head: String, uploads: bool) {
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
    let moved = Arc::new(AtomicUsize::new(0));
    for _ in 0..CLIENTS {
        server.give(Torrent {
            head: head.clone().into(),
            uploads,
            moved: Arc::clone(&moved),
        });
    }
    let mut client = server.connect();
    settle().await;
    let begun = moved.load(Ordering::Relaxed);
    for _ in 0..50 {
        let before = moved.load(Ordering::Relaxed);
        assert_eq!(client.get("/short").await.text(), "short");
        let meanwhile = moved.load(Ordering::Relaxed) - before;
        assert!(meanwhile <= MOVED_BYTES_MAX, "{head}: {meanwhile} bytes");
    }
    let all = moved.load(Ordering::Relaxed) - begun;
    assert!(all > 0, "{head}: the long bodies stand still");
}

#[tokio::test(start_paused = true)]
async fn uploads_do_not_hold_up_short_requests() {
    local(async {
        let head = post("/upload", "Content-Length: 1000000000000000\r\n");
        short_requests_are_served_beside(head, true).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn bodies_that_are_sent_back_do_not_hold_up_short_requests() {
    local(async {
        let head = post("/echo", "Content-Length: 1000000000000000\r\n");
        short_requests_are_served_beside(head, true).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn downloads_do_not_hold_up_short_requests() {
    local(async {
        for path in ["/small-parts", "/parts", "/large-parts"] {
            short_requests_are_served_beside(get(path), false).await;
        }
    })
    .await;
}
