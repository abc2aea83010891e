use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::gauge::Gauge;
use super::record::Record;
use super::{Pressure, lag_max};
use crate::Limits;
use crate::app::LoopWatch;

/// The lag is probed once in so many polls of connections.
const POLLS_PER_PROBE: u32 = 64;

/// The lag of a loop, as its own thread sees it. Only its thread ever touches it.
pub(crate) struct Meter {
    pub(super) lag_max: Duration,
    pub(super) record: Arc<Record>,
    /// Notified of what the loop does.
    pub(in crate::event_loop) watch: Option<Arc<dyn LoopWatch>>,
    /// Notified when a probe is due.
    pub(super) due: Notify,
    /// Since when a probe waits for its turn.
    pub(super) probing_since: Cell<Option<Instant>>,
    pub(super) gauge: Cell<Gauge>,
    pub(super) warned_at: Cell<Option<Instant>>,
    polls: Cell<u32>,
    polls_told: Cell<u32>,
    requests: Cell<u64>,
}

impl Meter {
    pub(crate) fn new(
        record: Arc<Record>,
        limits: &Limits,
        watch: Option<Arc<dyn LoopWatch>>,
    ) -> Self {
        let lag_max = lag_max(limits);
        let standing = limits.loop_lag_standing;
        if let Some(watch) = &watch {
            record.set_watch(watch);
        }
        Self {
            lag_max,
            record,
            watch,
            due: Notify::new(),
            probing_since: Cell::new(None),
            gauge: Cell::new(Gauge::new(lag_max, standing)),
            warned_at: Cell::new(None),
            polls: Cell::new(0),
            polls_told: Cell::new(0),
            requests: Cell::new(0),
        }
    }

    pub(crate) fn pressure(&self) -> Pressure {
        self.gauge.get().pressure()
    }

    /// Counts a request that is given to the application.
    pub(crate) fn count_request(&self) {
        self.requests.set(self.requests.get() + 1);
    }

    /// Counts a new connection that was rejected.
    pub(crate) fn count_rejected(&self) {
        self.record.count_rejected();
    }

    /// Counts a connection or a request that is declined, and for what.
    pub(crate) fn count_declined(&self, why: &'static str) {
        self.record.count_declined(why);
    }

    /// Counts a poll; `true` if it is time to look after the probe.
    pub(super) fn count_poll(&self) -> bool {
        let polls = self.polls.get().wrapping_add(1);
        self.polls.set(polls);
        polls.is_multiple_of(POLLS_PER_PROBE)
    }

    /// One tick of the loop: has a loop probed that has too little to do for the count of its polls
    /// to come to it.
    pub(crate) fn tick(&self) {
        self.publish();
        let polls = self.polls.get();
        if self.polls_told.replace(polls) != polls {
            self.due.notify_one();
        }
    }

    /// Lets the other threads see how much the loop has done.
    pub(super) fn publish(&self) {
        self.record.set_requests(self.requests.get());
    }
}
