//! The result of a run.

use std::time::{Duration, SystemTime};

use crate::plan::{Pace, StreamPlan};
use crate::record::{ByRate, FirstResponse, RequestRecord, Tally, Timeline};
use crate::verdict::{ServerUsage, ThreadUsage};

/// A run and all its measurements.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The time at which it began.
    pub started: SystemTime,
    /// The longest of the streams' times.
    pub elapsed: Duration,
    /// True if it was ended early.
    pub interrupted: bool,
    /// True if it gave up, or a part of it, because no connection could be made.
    pub gave_up: bool,
    /// The streams in the plan's order; at least one.
    pub streams: Vec<StreamMeasurement>,
    /// The CPU time of the threads that made the load.
    pub generator: Vec<ThreadUsage>,
    /// The server's CPU time and memory, where it could be seen.
    pub server: Option<ServerUsage>,
}

impl Measurement {
    /// Returns the reason for which it gave up, for people.
    pub(crate) fn why_it_gave_up(&self) -> &'static str {
        let has_response = |stream: &StreamMeasurement| stream.tally.responses() > 0;
        if self.streams.iter().any(has_response) {
            "a part of the load could not connect; what it was to send is missing"
        } else {
            "nothing responded"
        }
    }
}

/// The measurements of one stream.
#[derive(Clone, Debug)]
pub struct StreamMeasurement {
    /// The plan.
    pub plan: StreamPlan,
    /// Time from the run's begin until the stream's last request ended, or to its interruption. One
    /// that failed counts until the end of sending at most: the wait for a time-out after that
    /// makes no rate less.
    pub elapsed: Duration,
    /// Sums over the whole run.
    pub tally: Tally,
    /// The run by intervals.
    pub timeline: Timeline,
    /// Outcomes by the rate that was asked for, where it varies.
    pub by_rate: ByRate,
    /// The first response, if there was one.
    pub first: Option<FirstResponse>,
    /// The times of single requests, at most [`StreamPlan::records_max`].
    pub records: Vec<RequestRecord>,
    /// Open loop: the most requests that were in flight at once, of each thread and added up.
    pub in_flight_most: u64,
    /// Requests that were due or in flight when the run was interrupted or given up.
    pub unfinished: u64,
}

impl StreamMeasurement {
    /// The share of a rate that may be missed without a warning: 0.1 %.
    pub const MISSED_MAX: f64 = 0.001;

    /// Returns the responses per second over the whole run, with any status (ab's "Requests per
    /// second").
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a count of requests")]
    pub fn requests_per_second(&self) -> f64 {
        self.tally.responses() as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Open loop: returns the share of the requests that were due and not sent before the
    /// schedule's end.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a count of requests")]
    pub fn missed(&self) -> f64 {
        let counts = &self.tally.counts;
        match self.plan.pace {
            Pace::Open(_) if counts.due > 0 => {
                counts.due.saturating_sub(counts.sent) as f64 / counts.due as f64
            }
            _ => 0.0,
        }
    }

    /// Returns true if more than 0.1 % of the rate was missed.
    #[must_use]
    pub fn missed_its_rate(&self) -> bool {
        self.missed() > Self::MISSED_MAX
    }

    /// Returns the number of requests that ab would count as failed: no response, or one of another
    /// length.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.tally.failures.total() + self.tally.counts.other_length
    }
}
