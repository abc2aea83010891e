//! A thread's share of a stream.

use std::sync::Arc;
use std::time::Instant;

use super::{Pacer, PathTurns, Stop};
use crate::plan::{Pace, StreamPlan};

/// The run's clock: nanoseconds since its begin, the same for all threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns the nanoseconds since the run began.
    pub(crate) fn now(self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// One thread's share of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    pub(crate) plan: StreamPlan,
    /// Number of this thread among those of its stream.
    pub(crate) index: u32,
    /// Its number of the stream's connections.
    pub(crate) connections: usize,
    /// Its number of the stream's requests.
    pub(crate) requests: Option<u64>,
    /// The paths, shared by all threads of the stream.
    pub(crate) paths: Option<Arc<PathTurns>>,
    pub(crate) clock: Clock,
    pub(crate) stop: Stop,
}

/// The end of a thread's share.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ending {
    /// The time at which its last request ended.
    pub(crate) last_ns: u64,
    /// Open loop: the most requests that were in flight at once.
    pub(crate) in_flight_most: u64,
    /// Requests that were due or in flight when the run was interrupted or given up.
    pub(crate) unfinished: u64,
    /// True if it was interrupted, or gave up, before it was over.
    pub(crate) was_cut: bool,
    /// True if it gave up, because no connection could be made.
    pub(crate) gave_up: bool,
}

impl Share {
    /// Returns share number `index` of a stream, whose threads all have the same `paths`.
    pub(crate) fn of(
        plan: &StreamPlan,
        index: u32,
        paths: Option<Arc<PathTurns>>,
        clock: Clock,
        stop: Stop,
    ) -> Self {
        let threads = u64::from(plan.threads.max(1));
        let part = |whole: u64| whole / threads + u64::from(u64::from(index) < whole % threads);
        Self {
            index,
            connections: usize::try_from(part(plan.connections.into())).unwrap_or(usize::MAX),
            requests: plan.end.requests.map(part),
            plan: plan.clone(),
            paths,
            clock,
            stop,
        }
    }

    /// Open loop: returns the pacer of this thread's requests.
    pub(crate) fn pacer(&self) -> Option<Pacer> {
        let Pace::Open(schedule) = &self.plan.pace else {
            return None;
        };
        let arrivals = schedule.arrivals(self.index.into(), self.plan.threads.max(1).into());
        Some(Pacer::new(arrivals, self.sending_ends()))
    }

    /// Returns the time at which sending ends, in nanoseconds since the run began.
    pub(crate) fn sending_ends(&self) -> u64 {
        self.plan.duration().map_or(u64::MAX, |duration| {
            u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
        })
    }
}
