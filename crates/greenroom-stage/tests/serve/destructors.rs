//! Bodies whose destructors panic: responses that are complete reach their clients all the same.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::routing::get;
use greenroom_stage::Placement;
use http_body::{Frame, SizeHint};

use crate::rig::{Client, patient, serve, within};

/// More than a body that is left alone: its first part is asked for at once.
const LARGE: usize = 20_000;

/// A body of one part, whose destructor panics.
struct Fragile {
    part: Option<Bytes>,
    /// It tells its length ahead.
    is_sized: bool,
    /// It panics when it is asked for its part.
    is_broken: bool,
}

impl Fragile {
    fn body(bytes: usize, is_sized: bool, is_broken: bool) -> Body {
        Body::new(Self {
            part: Some(vec![b'x'; bytes].into()),
            is_sized,
            is_broken,
        })
    }
}

impl HttpBody for Fragile {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        assert!(!self.is_broken, "in a body, on purpose");
        Poll::Ready(self.part.take().map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_sized && self.part.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let left = self.part.as_ref().map_or(0, Bytes::len) as u64;
        if self.is_sized {
            SizeHint::with_exact(left)
        } else {
            SizeHint::default()
        }
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        panic!("in a destructor, on purpose");
    }
}

fn router() -> Router {
    Router::new()
        .route("/hello", get(|| async { "hello" }))
        .route(
            "/streamed",
            get(|| async { Fragile::body(3, false, false) }),
        )
        .route(
            "/sized",
            get(|| async { Fragile::body(LARGE, true, false) }),
        )
        .route(
            "/broken",
            get(|| async { Fragile::body(LARGE, true, true) }),
        )
}

/// Returns the addresses of a server on whose loop all runs, and of one whose stage runs all.
async fn placed() -> [SocketAddr; 2] {
    let stage = patient().build().unwrap();
    [
        serve(router().layer(Placement::inline())).await,
        serve(router().layer(Placement::on(&stage))).await,
    ]
}

#[tokio::test]
async fn one_at_the_end_of_a_stream_harms_neither_the_response_nor_the_next() {
    within(async {
        for address in placed().await {
            let mut client = Client::connect(address).await;
            client
                .send("GET /streamed HTTP/1.1\r\nHost: test\r\n\r\n")
                .await;
            client.receive_head().await;
            assert_eq!(client.receive_chunk().await.unwrap(), "xxx");
            assert_eq!(client.receive_chunk().await.unwrap(), "");
            assert_eq!(client.get("/hello").await.body, "hello");
        }
    })
    .await;
}

#[tokio::test]
async fn one_of_a_body_that_is_whole_at_once_does_not_either() {
    within(async {
        for address in placed().await {
            let mut client = Client::connect(address).await;
            let response = client.get("/sized").await;
            assert_eq!((response.status, response.body.len()), (200, LARGE));
            assert_eq!(client.get("/hello").await.body, "hello");
        }
    })
    .await;
}

#[tokio::test]
async fn one_of_a_body_that_has_panicked_itself_is_500_and_no_more() {
    within(async {
        for address in placed().await {
            let mut client = Client::connect(address).await;
            assert_eq!(client.get("/broken").await.status, 500);
            assert_eq!(client.get("/hello").await.body, "hello");
        }
    })
    .await;
}
