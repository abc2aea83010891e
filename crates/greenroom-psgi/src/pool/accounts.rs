use std::sync::Arc;
use std::time::{Duration, Instant};

use super::charge::RunEnd;
use super::phase::{Counts, Phase, Settlement};
use super::worker::{Ending, Worker};

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

/// The accounts of one worker.
#[derive(Debug)]
pub(super) struct Accounts {
    pub(super) worker: Arc<Worker>,
    requests: Counts,
    /// The time that its runs are expected to take, all together.
    expected: Duration,
    pub(super) draining: bool,
    pub(super) condemned: bool,
    /// The time when a link to it ended.
    pub(super) lost: Option<Instant>,
    pub(super) ending: Ending,
    /// The runs that it has released.
    pub(super) released: u64,
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
            requests: Counts::default(),
            expected: Duration::ZERO,
            draining: false,
            condemned: false,
            lost: None,
            ending: Ending::default(),
            released: 0,
            is_alone: false,
            progress: now,
            turned: now,
        }
    }

    pub(super) fn running(&self) -> u32 {
        self.under_way([Phase::Running, Phase::Stalled, Phase::Detached])
    }

    pub(super) fn waiting(&self) -> u32 {
        self.under_way([Phase::Waiting])
    }

    pub(super) fn served(&self) -> u64 {
        self.requests.of([Phase::Served])
    }

    pub(super) fn is_idle(&self) -> bool {
        self.running() + self.waiting() == 0
    }

    fn under_way<const N: usize>(&self, phases: [Phase; N]) -> u32 {
        u32::try_from(self.requests.of(phases)).unwrap_or(u32::MAX)
    }

    /// Returns `true` if one more request may be sent, with `depth` runs ahead and `concurrency`
    /// requests in all. A run that seems to block its worker gets none behind it, even if the
    /// worker sends frames meanwhile.
    pub(super) fn has_capacity(&self, depth: u32, concurrency: u32, now: Instant) -> bool {
        let is_quick = !self.is_alone && now.duration_since(self.turned) < SLOW_AFTER;
        let running = self.running();
        let is_free = running == 0 || (running < depth && is_quick);
        let going_on = self.under_way([Phase::Waiting, Phase::Unwanted]);
        is_free && running + going_on < concurrency && self.serves()
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
        let behind = (self.running() > 0).then_some(self.released);
        if behind.is_none() {
            self.progress = now;
            self.turned = now;
        }
        self.requests.enter(Phase::Running);
        self.expected += expected;
        behind
    }

    pub(super) fn settle(&mut self, settlement: &mut Settlement, now: Instant) {
        let (mut released, mut unused) = (0, 0);
        for (charge, end) in &settlement.ended {
            self.expected = self.expected.saturating_sub(charge.expected);
            released += u64::from(matches!(end, RunEnd::Released(_)));
            unused += u64::from(*end == RunEnd::Unused);
        }
        self.requests.add(&settlement.changes);
        if self.running() == 0 {
            self.expected = Duration::ZERO;
        }
        self.released += released + unused;
        if settlement.progress || released > 0 {
            self.progress = now;
        }
        if released + unused > 0 {
            self.turned = now;
        }
        settlement.clear();
    }

    pub(super) fn look(&self, now: Instant) -> WorkerLoad {
        let is_limited = self.requests.of([Phase::Running]) > 0;
        WorkerLoad {
            key: self.worker.key,
            running: self.running(),
            waiting: self.waiting(),
            served: self.served(),
            draining: self.draining,
            condemned: self.condemned,
            lost: self.lost.map(|lost| now.saturating_duration_since(lost)),
            stuck: is_limited.then(|| now.saturating_duration_since(self.progress)),
        }
    }
}
