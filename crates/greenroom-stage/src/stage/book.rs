use std::cell::OnceCell;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::error::Reason;
use super::meters::Meters;
use super::status::{Quantiles, Sheds};
use crate::admission::{Lateness, ServiceTime};

/// Two significant digits: a value is off by 1 % at most, and a histogram takes some 30 kB.
const SIGNIFICANT_DIGITS: u8 = 2;
const LONGEST_MICROS: u64 = 3_600_000_000;

/// What a stage remembers of its work.
#[derive(Debug)]
pub(crate) struct Book {
    pub(crate) wanted: ServiceTime,
    pub(crate) held: ServiceTime,
    pub(crate) lateness: Lateness,
    pub(crate) completed: u64,
    pub(crate) panicked: u64,
    pub(crate) cancelled: u64,
    pub(crate) sheds: Sheds,
    wait: Histogram<u64>,
    service: Histogram<u64>,
    stage: String,
    meters: OnceCell<Meters>,
}

impl Book {
    pub(crate) fn of(stage: &str) -> Self {
        Self {
            wanted: ServiceTime::default(),
            held: ServiceTime::default(),
            lateness: Lateness::default(),
            completed: 0,
            panicked: 0,
            cancelled: 0,
            sheds: Sheds::default(),
            wait: histogram(),
            service: histogram(),
            stage: stage.to_owned(),
            meters: OnceCell::new(),
        }
    }

    pub(crate) fn record_wait(&mut self, waited: Duration) {
        self.wait.saturating_record(micros(waited));
        self.meters().waited(waited);
    }

    pub(crate) fn record_end(&mut self, wanted: Duration, held: Duration, has_panicked: bool) {
        self.wanted.record(wanted);
        self.held.record(held);
        self.service.saturating_record(micros(held));
        self.panicked += u64::from(has_panicked);
        self.completed += u64::from(!has_panicked);
        self.meters().ended(held, has_panicked);
    }

    pub(crate) fn record_cancelled(&mut self) {
        self.cancelled += 1;
        self.meters().cancelled();
    }

    pub(crate) fn record_shed(&mut self, reason: Reason) {
        let count = match reason {
            Reason::Wait => &mut self.sheds.wait,
            Reason::QueueFull => &mut self.sheds.queue_full,
            Reason::Late => &mut self.sheds.late,
            Reason::Closed => &mut self.sheds.closed,
        };
        *count += 1;
        self.meters().shed(reason);
    }

    pub(crate) fn wait(&self) -> Quantiles {
        Quantiles::of(&self.wait)
    }

    pub(crate) fn service(&self) -> Quantiles {
        Quantiles::of(&self.service)
    }

    fn meters(&self) -> &Meters {
        self.meters.get_or_init(|| Meters::of(&self.stage))
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(LONGEST_MICROS, SIGNIFICANT_DIGITS).expect("these bounds are valid")
}

pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
