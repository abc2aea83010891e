use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use super::hand_off::Lane;
use super::importance::Importance;

const QUEUED: u8 = 0;
const BEGUN: u8 = 1;
const ABANDONED: u8 = 2;
const LATE: u8 = 3;

/// What a run got at the door, and how far it has come since.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) importance: Importance,
    pub(crate) lane: Lane,
    pub(crate) admitted: Instant,
    pub(crate) predicted: Duration,
    progress: AtomicU8,
}

impl Ticket {
    pub(crate) fn new(
        importance: Importance,
        lane: Lane,
        admitted: Instant,
        predicted: Duration,
    ) -> Self {
        Self {
            importance,
            lane,
            admitted,
            predicted,
            progress: AtomicU8::new(QUEUED),
        }
    }

    pub(crate) fn waited(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.admitted)
    }

    /// By how much it is late if its turn comes now.
    pub(crate) fn late(&self, now: Instant) -> Duration {
        self.waited(now).saturating_sub(self.predicted)
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.progress.load(Ordering::Acquire) == BEGUN
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.progress.load(Ordering::Acquire) == ABANDONED
    }

    pub(crate) fn begin(&self) -> bool {
        self.leave_queue(BEGUN)
    }

    pub(crate) fn abandon(&self) -> bool {
        self.leave_queue(ABANDONED)
    }

    pub(crate) fn drop_late(&self) -> bool {
        self.leave_queue(LATE)
    }

    /// Only one of those who would take it out of the queue succeeds.
    fn leave_queue(&self, to: u8) -> bool {
        let order = (Ordering::AcqRel, Ordering::Acquire);
        let left = self.progress.compare_exchange(QUEUED, to, order.0, order.1);
        left.is_ok()
    }
}
