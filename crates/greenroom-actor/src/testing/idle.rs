//! Detection of a runtime of one thread that has nothing left to run.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

/// The number of times that the runtime had nothing to run, and the tasks that wait for the next.
#[derive(Debug, Default)]
pub(super) struct Idle {
    times: AtomicU64,
    waiting: Mutex<Vec<Waker>>,
}

impl Idle {
    /// Notes that the runtime is about to park. Tasks that wait for that keep it from parking, and
    /// from moving its paused clock.
    pub(super) fn note(&self) {
        self.times.fetch_add(1, Ordering::Relaxed);
        let waiting = std::mem::take(&mut *self.waiting.lock());
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Returns a future that is ready when the runtime has nothing to run.
    pub(super) fn until(self: &Arc<Self>) -> UntilIdle {
        UntilIdle {
            idle: Arc::clone(self),
            begin: self.times.load(Ordering::Relaxed),
        }
    }
}

pub(super) struct UntilIdle {
    idle: Arc<Idle>,
    begin: u64,
}

impl Future for UntilIdle {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.idle.times.load(Ordering::Relaxed) != self.begin {
            return Poll::Ready(());
        }
        let waker = cx.waker().clone();
        self.idle.waiting.lock().push(waker);
        Poll::Pending
    }
}
