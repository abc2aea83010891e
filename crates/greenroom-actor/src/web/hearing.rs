//! The messages of a client, and its silence, which each of its bytes ends: a client that sends a
//! long message slowly cannot reply to a ping before the message's end.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use atomic_waker::AtomicWaker;
use axum::extract::ws::{Message, WebSocket};
use futures_util::StreamExt;
use futures_util::stream::SplitStream;
use tokio::time::sleep;

/// A WebSocket's messages, with the time since anything of them came.
///
/// axum does not show the bytes of a message before its end, but the socket wakes who waits for
/// them. It does so too when there is room for output again, once the client's system has
/// acknowledged some: then the client is there as well.
pub(super) struct Hearing {
    stream: SplitStream<WebSocket>,
    sign: Arc<Sign>,
    /// Wakes through `sign`.
    waker: Waker,
}

/// A sign of life of the client.
struct Sign {
    is_there: AtomicBool,
    task: AtomicWaker,
}

/// An error: nothing was heard of the client for too long.
pub(super) struct Silent;

impl Wake for Sign {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_there.store(true, Ordering::Release);
        self.task.wake();
    }
}

impl Hearing {
    pub(super) fn new(stream: SplitStream<WebSocket>) -> Self {
        let sign = Arc::new(Sign {
            is_there: AtomicBool::new(false),
            task: AtomicWaker::new(),
        });
        Self {
            stream,
            waker: Arc::clone(&sign).into(),
            sign,
        }
    }

    /// Returns the next message; `None` at the end.
    pub(super) async fn next(
        &mut self,
        silence_max: Duration,
    ) -> Result<Option<Result<Message, axum::Error>>, Silent> {
        let mut silence = pin!(sleep(silence_max));
        std::future::poll_fn(|cx| {
            // Registered before the look, or a sign in between would wake nobody.
            self.sign.task.register(cx.waker());
            let is_heard = self.sign.is_there.swap(false, Ordering::Acquire);
            let mut of_stream = Context::from_waker(&self.waker);
            if let Poll::Ready(next) = self.stream.poll_next_unpin(&mut of_stream) {
                return Poll::Ready(Ok(next));
            }
            if is_heard {
                silence.set(sleep(silence_max));
            }
            silence.as_mut().poll(cx).map(|()| Err(Silent))
        })
        .await
    }
}
