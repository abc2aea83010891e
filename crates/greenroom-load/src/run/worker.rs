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
    /// The time at which its last request ended; of one that failed, at most the end of sending.
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
        let [begin, end] = [index, index + 1].map(|index| connections_before(plan, index));
        let part = |all: u64| requests_of(plan, all, end) - requests_of(plan, all, begin);
        Self {
            index,
            connections: usize::try_from(end - begin).unwrap_or(usize::MAX),
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

/// Returns the number of a stream's connections that the threads before this one have.
fn connections_before(plan: &StreamPlan, index: u32) -> u64 {
    let (index, threads) = (u64::from(index), u64::from(plan.threads.max(1)));
    let connections = u64::from(plan.connections);
    index * (connections / threads) + index.min(connections % threads)
}

/// Returns the number of requests, of `all`, that so many of the connections send.
///
/// Connections have equal parts, and not threads: the connections of a thread that has fewer would
/// go on when the others have ended, and the rate would be too low.
fn requests_of(plan: &StreamPlan, all: u64, connections: u64) -> u64 {
    let whole = u128::from(plan.connections.max(1));
    let part = u128::from(all) * u128::from(connections) / whole;
    u64::try_from(part).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::End;

    /// Returns the connections and the requests of each thread.
    fn shares(threads: u32, connections: u32, requests: u64) -> Vec<(usize, u64)> {
        let mut plan = StreamPlan::new("http://host/".parse().expect("a URL"));
        (plan.threads, plan.connections) = (threads, connections);
        plan.end = End {
            requests: Some(requests),
            duration: None,
        };
        let clock = Clock::start();
        let share = |index| Share::of(&plan, index, None, clock, Stop::default());
        (0..threads)
            .map(share)
            .map(|share| (share.connections, share.requests.expect("a bound")))
            .collect()
    }

    #[test]
    fn each_connection_has_as_many_requests_whatever_its_thread() {
        assert_eq!(shares(3, 4, 12_000), [(2, 6000), (1, 3000), (1, 3000)]);
        assert_eq!(shares(2, 3, 101), [(2, 67), (1, 34)]);
        assert_eq!(shares(2, 2, 1), [(1, 0), (1, 1)]);
        assert_eq!(shares(1, 0, 5), [(0, 0)]);
    }

    #[test]
    fn all_requests_are_shared_out() {
        for (threads, connections, requests) in [(7, 64, 1003), (64, 127, 3), (5, 5, u64::MAX)] {
            let shares = shares(threads, connections, requests);
            let all: u64 = shares.iter().map(|(_, requests)| requests).sum();
            assert_eq!(requests, all, "{threads} threads");
        }
    }
}
