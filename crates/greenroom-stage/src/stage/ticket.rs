use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use super::lanes::{Band, Ended, Entry};
use super::submission::Submission;
use crate::fair::Flow;

const QUEUED: u8 = 0;
const BEGUN: u8 = 1;
const ABANDONED: u8 = 2;
const LATE: u8 = 3;

/// What a run got at the door, and how far it has come since.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) submission: Submission,
    pub(crate) terms: Terms,
    pub(crate) admitted: Instant,
    /// What it holds while it waits.
    pub(crate) bytes: usize,
    progress: AtomicU8,
}

/// What was foreseen for a run when it was let in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// How long it is to wait.
    pub(crate) predicted: Duration,
    /// How long it may wait; `None` is any time.
    pub(crate) wait_max: Option<Duration>,
    /// What it is expected to use; nothing, if it is more of what has begun.
    pub(crate) expected: Duration,
    /// Whether it is expected to compute for long, and not to be short or to sleep.
    pub(crate) computes: bool,
}

impl Ticket {
    pub(crate) fn new(submission: Submission, terms: Terms, bytes: usize, now: Instant) -> Self {
        Self {
            submission,
            terms,
            admitted: now,
            bytes,
            progress: AtomicU8::new(QUEUED),
        }
    }

    pub(crate) fn band(&self) -> Band {
        self.submission.band()
    }

    pub(crate) fn flow(&self) -> Flow {
        self.submission.flow()
    }

    /// How its work enters the lanes.
    pub(crate) fn entry(&self) -> Entry {
        let is_resumed = self.has_begun();
        Entry {
            band: self.band(),
            flow: self.flow(),
            expected: self.terms.expected,
            is_resumed,
        }
    }

    /// What is to be learnt of its run, which wanted a processor for so long.
    pub(crate) fn ended(&self, wanted: Duration) -> Ended {
        let stated = self.submission.stated;
        Ended { wanted, stated }
    }

    pub(crate) fn waited(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.admitted)
    }

    /// By how much it is late if its turn comes now.
    pub(crate) fn late(&self, now: Instant) -> Duration {
        self.waited(now).saturating_sub(self.terms.predicted)
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
