use std::time::Duration;

use hdrhistogram::Histogram;

use super::error::Reason;
use super::hand_off::Lane;
use super::status::{Quantiles, Sheds};
use crate::admission::{Lateness, ServiceTime};

/// Two significant digits: a value is off by 1 % at most, and a histogram takes some 30 kB.
const SIGNIFICANT_DIGITS: u8 = 2;
const LONGEST_MICROS: u64 = 3_600_000_000;

/// What a run has taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// In which lane it waited.
    pub(crate) lane: Lane,
    /// For how long it wanted a processor.
    pub(crate) wanted: Duration,
    /// For how long it held a thread.
    pub(crate) held: Duration,
}

/// What a stage remembers of its work.
#[derive(Debug)]
pub(crate) struct Book {
    /// Of work that goes ahead, and of the rest: the one is mostly short, the other is not.
    pub(crate) wanted_ahead: ServiceTime,
    pub(crate) wanted_fresh: ServiceTime,
    pub(crate) held: ServiceTime,
    pub(crate) lateness: Lateness,
    pub(crate) completed: u64,
    pub(crate) panicked: u64,
    pub(crate) cancelled: u64,
    pub(crate) sheds: Sheds,
    wait: Histogram<u64>,
    service: Histogram<u64>,
}

impl Book {
    pub(crate) fn new() -> Self {
        Self {
            wanted_ahead: ServiceTime::default(),
            wanted_fresh: ServiceTime::default(),
            held: ServiceTime::default(),
            lateness: Lateness::default(),
            completed: 0,
            panicked: 0,
            cancelled: 0,
            sheds: Sheds::default(),
            wait: histogram(),
            service: histogram(),
        }
    }

    pub(crate) fn record_wait(&mut self, waited: Duration) {
        self.wait.saturating_record(micros(waited));
    }

    /// A run has taken this, whether it came to its end or not.
    pub(crate) fn record_run(&mut self, run: &Run) {
        let mean = match run.lane {
            Lane::Resumed | Lane::Ahead => &mut self.wanted_ahead,
            Lane::Fresh => &mut self.wanted_fresh,
        };
        mean.record(run.wanted);
        self.held.record(run.held);
    }

    pub(crate) fn record_end(&mut self, run: &Run, has_panicked: bool) {
        self.record_run(run);
        self.service.saturating_record(micros(run.held));
        self.panicked += u64::from(has_panicked);
        self.completed += u64::from(!has_panicked);
    }

    pub(crate) fn record_shed(&mut self, reason: Reason) {
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

pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
