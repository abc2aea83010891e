//! Knows when a runtime of one thread has nothing left to run.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use crate::cell::family::lock;

/// How often the runtime had nothing to run, and who waits for the next time.
#[derive(Debug, Default)]
pub(super) struct Idle {
    times: AtomicU64,
    waiting: Mutex<Vec<Waker>>,
}

impl Idle {
    /// The runtime is about to rest. Whoever waits for that keeps it from resting, and from moving
    /// its paused clock.
    pub(super) fn note(&self) {
        self.times.fetch_add(1, Ordering::Relaxed);
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Done when the runtime has nothing to run.
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
        lock(&self.idle.waiting).push(waker);
        Poll::Pending
    }
}
