//! Frames, lengths and ends of bodies stay the same, on the loop and on a stage.

use std::convert::Infallible;
use std::fs::File;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::response::Response;
use futures_util::{FutureExt, StreamExt, stream};
use greenroom_stage::Placement;
use greenroom_timing::{FileOffer, FileRest};
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, StreamBody};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tower::{Layer, ServiceExt};

use crate::rig::{patient, within};

/// More than what is taken to be in memory.
const FRAME_BYTES: usize = 20_000;

/// Returns the body of a placed service's response.
async fn placed(placement: Placement, body: Body) -> Body {
    let body = Arc::new(Mutex::new(Some(body)));
    let service = tower::service_fn(move |_: Request| {
        let body = body.lock().unwrap().take().unwrap();
        async { Ok::<_, Infallible>(Response::new(body)) }
    });
    let request = Request::new(Body::empty());
    let response = placement.layer(service).oneshot(request).await;
    response.unwrap().into_body()
}

fn placements() -> [Placement; 2] {
    let stage = patient().threads(1..=1).build().unwrap();
    [Placement::on(&stage), Placement::inline()]
}

#[tokio::test]
async fn frames_and_trailers_come_in_their_order() {
    within(async {
        for placement in placements() {
            let mut trailers = HeaderMap::new();
            trailers.insert("checksum", "77".parse().unwrap());
            let data = |data: &'static str| Frame::data(Bytes::from(data));
            let frames = [data("one "), data("two"), Frame::trailers(trailers)];
            let frames = stream::iter(frames.map(Ok::<_, Infallible>));
            let body = placed(placement.clone(), Body::new(StreamBody::new(frames))).await;
            let collected = body.collect().await.unwrap();
            assert_eq!(collected.trailers().unwrap()["checksum"], "77");
            assert_eq!(collected.to_bytes(), "one two");
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_in_memory_says_its_length() {
    within(async {
        for placement in placements() {
            for bytes in [0, 1, 100_000] {
                let body = placed(placement.clone(), Body::from(vec![b'x'; bytes])).await;
                assert_eq!(body.size_hint().exact(), Some(bytes as u64));
                assert_eq!(body.is_end_stream(), bytes == 0);
                assert_eq!(body.collect().await.unwrap().to_bytes().len(), bytes);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn nothing_is_made_that_nobody_asks_for() {
    within(async {
        for placement in placements() {
            let made = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&made);
            let items = stream::iter(0..100).map(move |_| {
                counted.fetch_add(1, Ordering::SeqCst);
                Ok::<_, Infallible>("item")
            });
            let mut body = placed(placement.clone(), Body::from_stream(items)).await;
            assert_eq!(made.load(Ordering::SeqCst), 0);
            for asked in 1..=40 {
                body.frame().await.unwrap().unwrap();
                assert_eq!(made.load(Ordering::SeqCst), asked);
            }
        }
    })
    .await;
}

/// A body of so many frames, and of a length that is known, which offers a file with each.
struct OfFile(usize);

impl HttpBody for OfFile {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0 -= 1;
        let frame = Bytes::from(vec![b'f'; FRAME_BYTES]);
        let file = Arc::new(File::open("/dev/null").unwrap());
        FileRest::new(file, 0, self.0 as u64).offer(&frame);
        Poll::Ready(Some(Ok(Frame::data(frame))))
    }

    fn is_end_stream(&self) -> bool {
        self.0 == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact((self.0 * FRAME_BYTES) as u64)
    }
}

#[tokio::test]
async fn who_asks_for_a_frame_is_offered_the_file_behind_it() {
    within(async {
        for placement in placements() {
            let mut body = placed(placement, Body::new(OfFile(5))).await;
            for left in (0..5).rev() {
                let polled = poll_fn(|cx| {
                    let (polled, offer) = FileOffer::during(|| Pin::new(&mut body).poll_frame(cx));
                    polled.map(|polled| (polled, offer))
                });
                let (frame, offer) = polled.await;
                let frame = frame.unwrap().unwrap().into_data().unwrap();
                let rest = offer.and_then(|offer| offer.behind(&frame, left));
                assert!(rest.is_some(), "the file behind the last {left} frames");
            }
            assert!(body.is_end_stream());
        }
    })
    .await;
}

/// Reports when it is dropped, and if that was within a runtime.
struct Dropped(Option<oneshot::Sender<bool>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let is_within = Handle::try_current().is_ok();
        let _gone = self.0.take().unwrap().send(is_within);
    }
}

#[tokio::test]
async fn a_body_whose_client_leaves_is_dropped_within_its_runtime() {
    within(async {
        for placement in placements() {
            for is_polled in [false, true] {
                let (send, dropped) = oneshot::channel();
                let guard = Dropped(Some(send));
                let never = stream::poll_fn(move |_| {
                    let _held = &guard;
                    Poll::<Option<Result<Bytes, Infallible>>>::Pending
                });
                let mut body = placed(placement.clone(), Body::from_stream(never)).await;
                if is_polled {
                    assert!(body.frame().now_or_never().is_none());
                }
                drop(body);
                assert!(dropped.await.unwrap());
            }
        }
    })
    .await;
}
