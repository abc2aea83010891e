use std::sync::Arc;
use std::time::{Duration, Instant};

use super::run::{Charge, RunEnd};
use super::{Ending, Worker};

/// The time that a run may last before its worker is passed over for others.
const SLOW_AFTER: Duration = Duration::from_millis(5);

/// A snapshot of a worker for the supervisor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerLoad {
    pub(crate) key: u32,
    /// The requests that were sent and not released.
    pub(crate) running: u32,
    /// The requests whose response waits for an event, or is being streamed.
    pub(crate) waiting: u32,
    /// The requests that ended.
    pub(crate) served: u64,
    pub(crate) draining: bool,
    /// True if it broke the protocol, or is killed.
    pub(crate) condemned: bool,
    /// The time since a link to it was lost: it should have ended.
    pub(crate) lost: Option<Duration>,
    /// The time for which its runs have made no progress.
    pub(crate) stuck: Option<Duration>,
}

/// The progress of a worker since the last settlement.
#[derive(Debug, Default)]
pub(crate) struct Settlement {
    /// The runs that ended, each with its charge.
    pub(crate) ended: Vec<(Charge, RunEnd)>,
    /// The released runs whose request goes on without a run.
    pub(crate) went_on: u32,
    /// The connections that left HTTP, and go on without their request.
    pub(crate) stayed: u32,
    /// The ones of `stayed` that ended.
    pub(crate) stays_ended: u32,
    /// The requests that ended after they had gone on.
    pub(crate) ended_late: u32,
    /// The requests that go on although their client has left.
    pub(crate) left: u32,
    /// The ones of `left` that ended.
    pub(crate) left_ended: u32,
    /// The runs that have no time limit from now on.
    pub(crate) exempted: u32,
    /// The ones of `exempted` that have a time limit again, or are released.
    pub(crate) no_longer_exempt: u32,
    /// True if a frame of a run was received or sent.
    pub(crate) progress: bool,
}

impl Settlement {
    pub(crate) fn is_empty(&self) -> bool {
        let Self {
            ended,
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
        let counts = ended_late + left + left_ended + exempted + no_longer_exempt;
        ended.is_empty() && counts + stayed + stays_ended == 0 && !progress
    }

    pub(super) fn clear(&mut self) {
        self.ended.clear();
        *self = Self {
            ended: std::mem::take(&mut self.ended),
            ..Self::default()
        };
    }
}

/// The accounts of one worker.
#[derive(Debug)]
pub(super) struct Accounts {
    pub(super) worker: Arc<Worker>,
    pub(super) running: u32,
    /// The time that its runs are expected to take, all together.
    expected: Duration,
    pub(super) waiting: u32,
    /// The requests of clients that have left; the application goes on with them all the same.
    unwanted: u32,
    pub(super) served: u64,
    pub(super) draining: bool,
    pub(super) condemned: bool,
    /// The time when a link to it ended.
    pub(super) lost: Option<Instant>,
    pub(super) ending: Ending,
    /// The runs that it has released.
    pub(super) released: u64,
    exempt: u32,
    /// True if its run may be long: nothing is sent behind it.
    is_alone: bool,
    progress: Instant,
    /// The time when the run that it is at was begun, as far as is known.
    turned: Instant,
}

impl Accounts {
    pub(super) fn new(worker: Arc<Worker>, now: Instant) -> Self {
        Self {
            worker,
            running: 0,
            expected: Duration::ZERO,
            waiting: 0,
            unwanted: 0,
            served: 0,
            draining: false,
            condemned: false,
            lost: None,
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

    /// Returns `true` if one more request may be sent, with `depth` runs ahead and `concurrency`
    /// requests in all. A run that seems to block its worker gets none behind it, even if the
    /// worker sends frames meanwhile.
    pub(super) fn has_capacity(&self, depth: u32, concurrency: u32, now: Instant) -> bool {
        let is_quick = !self.is_alone && now.duration_since(self.turned) < SLOW_AFTER;
        let is_free = self.running == 0 || (self.running < depth && is_quick);
        is_free && self.under_way() + self.unwanted < concurrency && self.serves()
    }

    /// Returns `true` if it gets requests at all.
    pub(super) fn serves(&self) -> bool {
        !self.draining && !self.condemned && self.lost.is_none()
    }

    /// Returns the time until its runs are expected to be done.
    pub(super) fn free_in(&self, now: Instant) -> Duration {
        let elapsed = now.saturating_duration_since(self.turned);
        self.expected.saturating_sub(elapsed)
    }

    /// Adds a run; returns the runs that the worker had released before, if others are ahead of it.
    pub(super) fn begin(
        &mut self,
        is_alone: bool,
        expected: Duration,
        now: Instant,
    ) -> Option<u64> {
        self.is_alone = is_alone;
        let behind = (self.running > 0).then_some(self.released);
        if self.running == 0 {
            self.progress = now;
            self.turned = now;
        }
        self.running += 1;
        self.expected += expected;
        behind
    }

    /// Removes a run that is over.
    pub(super) fn end_run(&mut self, expected: Duration) {
        self.running = self.running.saturating_sub(1);
        self.expected = match self.running {
            0 => Duration::ZERO,
            _ => self.expected.saturating_sub(expected),
        };
    }

    pub(super) fn settle(&mut self, settlement: &mut Settlement, now: Instant) {
        let (mut released, mut unused) = (0, 0);
        for (charge, end) in &settlement.ended {
            self.end_run(charge.expected);
            released += u32::from(matches!(end, RunEnd::Released(_)));
            unused += u32::from(*end == RunEnd::Unused);
        }
        let Settlement {
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

    pub(super) fn look(&self, now: Instant) -> WorkerLoad {
        let is_held = self.running > self.exempt;
        WorkerLoad {
            key: self.worker.key,
            running: self.running,
            waiting: self.waiting,
            served: self.served,
            draining: self.draining,
            condemned: self.condemned,
            lost: self.lost.map(|lost| now.saturating_duration_since(lost)),
            stuck: is_held.then(|| now.saturating_duration_since(self.progress)),
        }
    }
}
