use std::time::{Duration, Instant};

use greenroom_quantiles::{Quantiles, micros};
use hdrhistogram::Histogram;

use super::error::Reason;
use super::scheduler::Bounds;
use super::shares::Shares;
use super::status::Sheds;
use super::submission::Submission;
use crate::admission::{Lateness, ServiceTime};

/// Two significant digits: a value is off by 1 % at most, and a histogram takes some 30 kB.
const SIGNIFICANT_DIGITS: u8 = 2;
const LONGEST_MICROS: u64 = 3_600_000_000;

/// The time that a run, or a part of it, has taken.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Run {
    /// The time for which it wanted a processor.
    pub(crate) wanted: Duration,
    /// The time for which it held a thread.
    pub(crate) held: Duration,
}

impl Run {
    pub(crate) fn add(&mut self, wanted: Duration, held: Duration) {
        self.wanted += wanted;
        self.held += held;
    }

    /// Returns the time it has used of a stage: of processors or of threads, whichever it used the
    /// larger part of (dominant resource fairness, Ghodsi et al. 2011), in processor time. With 2
    /// that may compute and 576 threads in all, one that sleeps for 2 s used as much as one that
    /// computes for 6.9 ms.
    pub(crate) fn used(&self, bounds: &Bounds) -> Duration {
        let computing = u32::try_from(bounds.compute_max).unwrap_or(u32::MAX);
        let threads = u32::try_from(bounds.threads_max).unwrap_or(u32::MAX);
        let held = self.held / threads.max(1);
        self.wanted.max(held.saturating_mul(computing))
    }
}

/// The statistics of a stage's work.
#[derive(Debug)]
pub(crate) struct Stats {
    pub(crate) held: ServiceTime,
    pub(crate) lateness: Lateness,
    pub(crate) completed: u64,
    pub(crate) panicked: u64,
    pub(crate) cancelled: u64,
    pub(crate) sheds: Sheds,
    pub(crate) shares: Shares,
    wait: Histogram<u64>,
    service: Histogram<u64>,
}

impl Stats {
    pub(crate) fn new() -> Self {
        Self {
            held: ServiceTime::default(),
            lateness: Lateness::default(),
            completed: 0,
            panicked: 0,
            cancelled: 0,
            sheds: Sheds::default(),
            shares: Shares::default(),
            wait: histogram(),
            service: histogram(),
        }
    }

    pub(crate) fn record_wait(&mut self, waited: Duration) {
        self.wait.saturating_record(micros(waited));
    }

    /// Records the time of a run that came to its end.
    pub(crate) fn record_run(&mut self, run: &Run) {
        self.held.record(run.held);
    }

    /// Records the time of a run that was given up. It would have taken at least as long: if that
    /// is less than the mean, nothing is known of it.
    pub(crate) fn record_given_up(&mut self, run: &Run) {
        if run.held > self.held.mean() {
            self.held.record(run.held);
        }
    }

    pub(crate) fn record_end(&mut self, run: &Run, has_panicked: bool) {
        self.service.saturating_record(micros(run.held));
        self.panicked += u64::from(has_panicked);
        self.completed += u64::from(!has_panicked);
    }

    /// Records the rejection of a run that was expected to use `expected`.
    pub(crate) fn record_shed(
        &mut self,
        submission: &Submission,
        expected: Duration,
        reason: Reason,
        now: Instant,
    ) {
        self.shares.rejected(submission, expected, now);
        let count = match reason {
            Reason::Wait => &mut self.sheds.wait,
            Reason::QueueFull => &mut self.sheds.queue_full,
            Reason::Late => &mut self.sheds.late,
        };
        *count += 1;
    }

    pub(crate) fn wait(&self) -> Quantiles {
        Quantiles::of(&self.wait)
    }

    pub(crate) fn service(&self) -> Quantiles {
        Quantiles::of(&self.service)
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(LONGEST_MICROS, SIGNIFICANT_DIGITS).expect("these bounds are valid")
}
