use hdrhistogram::Histogram;
use serde::Serialize;

use super::shares::Share;

/// A stage at one moment. Times are in microseconds; counts are since the stage was built.
#[derive(Clone, Debug, Serialize)]
pub struct StageStatus {
    /// The stage's name.
    pub name: String,
    /// How much waits for a thread, without what its client has given up.
    pub queue_len: usize,
    /// With how many waiting new work is refused.
    pub queue_max: usize,
    /// Bytes that what waits takes, bodies not counted.
    pub queue_bytes: usize,
    /// With how many bytes new work is refused.
    pub queue_bytes_max: usize,
    /// How long who comes last would wait: who has used less waits for less.
    pub predicted_wait_micros: u64,
    /// How long work may wait; refused is whoever would wait for more than nine tenths of it.
    pub queue_wait_max_micros: u64,
    /// The threads.
    pub threads: Threads,
    /// What was refused or dropped before it began.
    pub sheds: Sheds,
    /// What ended with a result.
    pub completed: u64,
    /// What ended with a panic.
    pub panicked: u64,
    /// What was given up before its end, because its client had left.
    pub cancelled: u64,
    /// How long work waited for its first thread.
    pub wait: Quantiles,
    /// For how long work held a thread, waiting for its wake-ups not included.
    pub service: Quantiles,
    /// Which route and client have used how much of it, at most 32, those first that used most of late.
    pub shares: Vec<Share>,
}

/// What a stage's threads do at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Threads {
    /// All.
    pub total: usize,
    /// With something to do.
    pub working: usize,
    /// Of these, those that were blocked in the system when the controller last looked. It looks
    /// only while something waits.
    pub blocked: usize,
    /// Without anything to do.
    pub idle: usize,
}

/// What a stage has shed, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sheds {
    /// Refused: the predicted wait was too long.
    pub wait: u64,
    /// Refused: the queue was full.
    pub queue_full: u64,
    /// Dropped when its turn came too late.
    pub late: u64,
}

impl Sheds {
    /// All.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.wait + self.queue_full + self.late
    }
}

/// A distribution of times in microseconds. All zero when nothing was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Quantiles {
    /// How many times were recorded.
    pub count: u64,
    /// Half of them are at most this.
    pub p50_micros: u64,
    /// 90 of 100 are at most this.
    pub p90_micros: u64,
    /// 99 of 100 are at most this.
    pub p99_micros: u64,
    /// The longest.
    pub max_micros: u64,
}

impl Quantiles {
    pub(crate) fn of(histogram: &Histogram<u64>) -> Self {
        Self {
            count: histogram.len(),
            p50_micros: histogram.value_at_quantile(0.5),
            p90_micros: histogram.value_at_quantile(0.9),
            p99_micros: histogram.value_at_quantile(0.99),
            max_micros: histogram.max(),
        }
    }
}
