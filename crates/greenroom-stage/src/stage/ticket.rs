use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::lanes::{Advance, Band, Ended, Entry};
use super::submission::Submission;
use crate::fair::Flow;
use crate::run_delay::nanos;

const QUEUED: u8 = 0;
const BEGUN: u8 = 1;
const ABANDONED: u8 = 2;
const LATE: u8 = 3;
const LEFT: u8 = 4;

/// The terms on which a run was admitted, and its progress since.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) submission: Submission,
    pub(crate) terms: Terms,
    pub(crate) admitted: Instant,
    /// Bytes that it holds while it waits.
    pub(crate) bytes: usize,
    progress: AtomicU8,
    /// Nanoseconds for which it has wanted a processor so far.
    wanted: AtomicU64,
    /// Its flow is charged with all that it is expected to use, as its first poll is not over.
    is_charged: AtomicBool,
}

/// The terms of a run, foreseen when it was admitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// Its predicted wait.
    pub(crate) predicted: Duration,
    /// The longest wait allowed; `None` is any time.
    pub(crate) wait_max: Option<Duration>,
    /// The time it is expected to use; zero for more of a response that has begun.
    pub(crate) expected: Duration,
    /// `true` if it is expected to compute for long, and not to be short or to sleep.
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
            wanted: AtomicU64::new(0),
            is_charged: AtomicBool::new(true),
        }
    }

    pub(crate) fn band(&self) -> Band {
        self.submission.band()
    }

    pub(crate) fn flow(&self) -> Flow {
        self.submission.flow()
    }

    /// Returns the entry with which its work enters the lanes.
    pub(crate) fn entry(&self) -> Entry {
        if self.has_left() {
            return Entry::of_left(self.flow());
        }
        let wanted = Duration::from_nanos(self.wanted.load(Ordering::Relaxed));
        let is_begun = self.has_begun();
        let is_charged = is_begun && self.is_charged.load(Ordering::Relaxed);
        Entry {
            band: self.band(),
            flow: self.flow(),
            expected: self.terms.expected.saturating_sub(wanted),
            advance: is_charged.then(|| Advance {
                time: self.terms.expected,
                at: Instant::now(),
            }),
            is_begun,
        }
    }

    /// Notes that a poll of it is over, and with it what was charged in advance.
    pub(crate) fn note_polled(&self) {
        self.is_charged.store(false, Ordering::Relaxed);
    }

    /// Notes for how long it has wanted a processor in all its polls so far.
    pub(crate) fn note_wanted(&self, wanted: Duration) {
        self.wanted.store(nanos(wanted), Ordering::Relaxed);
    }

    /// Returns the result of its run, which wanted a processor for `wanted`.
    pub(crate) fn ended(&self, wanted: Duration) -> Ended {
        let stated = self.submission.stated;
        Ended { wanted, stated }
    }

    /// Returns `false` for more of a response that has begun, which says nothing of the time of a
    /// whole run.
    pub(crate) fn is_whole_run(&self) -> bool {
        !self.terms.expected.is_zero()
    }

    pub(crate) fn waited(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.admitted)
    }

    /// Returns how late it is if its turn comes now.
    pub(crate) fn late(&self, now: Instant) -> Duration {
        self.waited(now).saturating_sub(self.terms.predicted)
    }

    pub(crate) fn has_begun(&self) -> bool {
        matches!(self.progress.load(Ordering::Acquire), BEGUN | LEFT)
    }

    /// True if it has begun and its client has left: it is only to be dropped.
    pub(crate) fn has_left(&self) -> bool {
        self.progress.load(Ordering::Acquire) == LEFT
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.progress.load(Ordering::Acquire) == ABANDONED
    }

    pub(crate) fn begin(&self) -> bool {
        self.go_on(QUEUED, BEGUN)
    }

    pub(crate) fn abandon(&self) -> bool {
        self.go_on(QUEUED, ABANDONED)
    }

    pub(crate) fn drop_late(&self) -> bool {
        self.go_on(QUEUED, LATE)
    }

    pub(crate) fn leave(&self) -> bool {
        self.go_on(BEGUN, LEFT)
    }

    /// Of several callers only one succeeds.
    fn go_on(&self, from: u8, to: u8) -> bool {
        let order = (Ordering::AcqRel, Ordering::Acquire);
        let gone_on = self.progress.compare_exchange(from, to, order.0, order.1);
        gone_on.is_ok()
    }
}
