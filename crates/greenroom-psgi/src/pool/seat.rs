use std::sync::Arc;
use std::time::{Duration, Instant};

use super::routes::Route;
use super::{Ending, Worker};

/// How long a run may last before its worker is passed over for others.
const SLOW_AFTER: Duration = Duration::from_millis(5);

/// What a worker looks like to the supervisor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat {
    pub(crate) key: u32,
    /// Requests that were sent and not given back.
    pub(crate) running: u32,
    /// Requests whose answer waits for an event, or is being streamed.
    pub(crate) waiting: u32,
    /// Requests that ended.
    pub(crate) served: u64,
    pub(crate) draining: bool,
    /// It broke the protocol.
    pub(crate) condemned: bool,
    /// How long its runs have made no progress.
    pub(crate) stuck: Option<Duration>,
}

/// What a worker has done since the last settlement.
#[derive(Debug, Default)]
pub(crate) struct Settlement {
    /// Runs that were released: of which route, and how long each kept the worker busy.
    pub(crate) released: Vec<(Route, Duration)>,
    /// Runs that were never sent.
    pub(crate) unused: u32,
    /// Runs that nobody will hear of any more, because their link is gone.
    pub(crate) lost: u32,
    /// Of the released, those whose request goes on without a run.
    pub(crate) went_on: u32,
    /// Connections that left HTTP, and go on without their request.
    pub(crate) stayed: u32,
    /// Of those, the ones that ended.
    pub(crate) stays_ended: u32,
    /// Requests that ended after they had gone on.
    pub(crate) ended_late: u32,
    /// Requests that go on although their client has left.
    pub(crate) left: u32,
    /// Of those, the ones that ended.
    pub(crate) left_ended: u32,
    /// Runs that may take as long as they like from now on.
    pub(crate) exempted: u32,
    /// Of those, the ones that may no longer, or are given back.
    pub(crate) no_longer_exempt: u32,
    /// Something was heard of a run, or sent for it.
    pub(crate) progress: bool,
}

impl Settlement {
    pub(crate) fn is_empty(&self) -> bool {
        let Self {
            released,
            unused,
            lost,
            went_on: _,
            stayed,
            stays_ended,
            ended_late,
            left,
            left_ended,
            exempted,
            no_longer_exempt,
            progress,
        } = self;
        let counts = unused + lost + ended_late + left + left_ended + exempted + no_longer_exempt;
        released.is_empty() && counts + stayed + stays_ended == 0 && !progress
    }

    pub(super) fn clear(&mut self) {
        self.released.clear();
        *self = Self {
            released: std::mem::take(&mut self.released),
            ..Self::default()
        };
    }
}

/// A worker's accounts.
#[derive(Debug)]
pub(super) struct Accounts {
    pub(super) worker: Arc<Worker>,
    pub(super) running: u32,
    pub(super) waiting: u32,
    /// Of clients that have left; the application goes on with them all the same.
    unwanted: u32,
    pub(super) served: u64,
    pub(super) draining: bool,
    pub(super) condemned: bool,
    pub(super) ending: Ending,
    /// Runs that it has given back.
    pub(super) released: u64,
    exempt: u32,
    /// Its run may be long: nothing is sent behind it.
    is_alone: bool,
    progress: Instant,
    /// When the run that it is at was begun, as far as is known.
    turned: Instant,
}

impl Accounts {
    pub(super) fn new(worker: Arc<Worker>, now: Instant) -> Self {
        Self {
            worker,
            running: 0,
            waiting: 0,
            unwanted: 0,
            served: 0,
            draining: false,
            condemned: false,
            ending: Ending::default(),
            released: 0,
            exempt: 0,
            is_alone: false,
            progress: now,
            turned: now,
        }
    }

    pub(super) fn under_way(&self) -> u32 {
        self.running + self.waiting
    }

    /// Whether one more request may be sent, with `depth` runs ahead and `concurrency` requests in
    /// all. One that seems to hold its worker up gets nobody behind it, whatever it sends meanwhile.
    pub(super) fn has_room(&self, depth: u32, concurrency: u32, now: Instant) -> bool {
        let is_quick = !self.is_alone && now.duration_since(self.turned) < SLOW_AFTER;
        let is_free = self.running == 0 || (self.running < depth && is_quick);
        is_free
            && self.under_way() + self.unwanted < concurrency
            && !self.draining
            && !self.condemned
    }

    /// One more run; if it has others before it, how many the worker had given back till then.
    pub(super) fn begin(&mut self, is_alone: bool, now: Instant) -> Option<u64> {
        self.is_alone = is_alone;
        let behind = (self.running > 0).then_some(self.released);
        if self.running == 0 {
            self.progress = now;
            self.turned = now;
        }
        self.running += 1;
        behind
    }

    pub(super) fn settle(&mut self, settlement: &mut Settlement, now: Instant) {
        let released = u32::try_from(settlement.released.len()).unwrap_or(u32::MAX);
        let Settlement {
            unused,
            lost,
            went_on,
            ended_late,
            stayed,
            stays_ended,
            left,
            left_ended,
            exempted,
            no_longer_exempt,
            progress,
            ..
        } = *settlement;
        self.running = self.running.saturating_sub(released + unused + lost);
        self.released += u64::from(released + unused);
        let came = self.waiting + went_on + stayed;
        self.waiting = came.saturating_sub(ended_late + left + stays_ended);
        self.unwanted = (self.unwanted + left).saturating_sub(left_ended);
        self.exempt = (self.exempt + exempted).saturating_sub(no_longer_exempt);
        let ended_at_once = released - went_on.min(released);
        self.served += u64::from(ended_at_once + ended_late + left_ended);
        if progress || released > 0 {
            self.progress = now;
        }
        if released + unused > 0 {
            self.turned = now;
        }
        settlement.clear();
    }

    pub(super) fn look(&self, now: Instant) -> Seat {
        let is_held = self.running > self.exempt;
        Seat {
            key: self.worker.key,
            running: self.running,
            waiting: self.waiting,
            served: self.served,
            draining: self.draining,
            condemned: self.condemned,
            stuck: is_held.then(|| now.saturating_duration_since(self.progress)),
        }
    }
}
