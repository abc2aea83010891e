//! Recalls requests from a worker that is blocked by the one before them.
//!
//! Only requests of routes that have proven short are sent behind others. When one of them turns
//! out long all the same, those behind it need not wait for it: other workers may be free.

use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use super::connection::Link;
use super::entry::{Wanted, first_held};

/// The time in which a worker may release no run before those behind are recalled.
const RECALLED_AFTER: Duration = Duration::from_millis(10);

/// A timer that finds a blocked worker.
#[derive(Debug)]
pub(super) struct Watch {
    timer: Pin<Box<Sleep>>,
    /// The runs that had been released when the timer was set; `None` while it is not set.
    released: Option<u64>,
}

impl Watch {
    pub(super) fn new() -> Self {
        Self {
            timer: Box::pin(sleep(RECALLED_AFTER)),
            released: None,
        }
    }

    fn set(&mut self, released: u64) {
        self.timer.as_mut().reset(Instant::now() + RECALLED_AFTER);
        self.released = Some(released);
    }
}

impl Link {
    /// Recalls requests from a worker that is blocked; polled with the link.
    pub(super) fn poll_recall(&self, watch: &mut Watch, cx: &mut Context<'_>) {
        while self.behind.get() > 0 {
            if watch.released.is_some() && watch.timer.as_mut().poll(cx).is_pending() {
                return;
            }
            let Some(released) = self.pool.released(self.worker.key) else {
                return;
            };
            if watch.released == Some(released) && self.pool.has_idle_besides(self.worker.key) {
                self.recall(released);
            }
            watch.set(released);
        }
        watch.released = None;
    }

    /// Wakes the tasks that wait for these requests, so that each sends its own to another worker.
    fn recall(&self, released: u64) {
        let mut entries = self.entries.borrow_mut();
        let first = first_held(&entries);
        for (_, entry) in entries.iter_mut() {
            // The first of this link may be what the worker is at, unless it came later than
            // that.
            let is_behind = Some(entry.sequence) != first || entry.place.behind == Some(released);
            let has_begun = !entry.phase.holds_run() || entry.has_begun;
            let may_go = entry.place.behind.is_some() && entry.place.recallable;
            if is_behind && !has_begun && may_go && entry.wanted == Wanted::Yes {
                entry.wanted = Wanted::Elsewhere;
                entry.wake();
            }
        }
    }
}
