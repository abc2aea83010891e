use greenroom_quantiles::Quantiles;
use serde::Serialize;

use super::shares::Share;

/// A stage at one moment. Times are in microseconds; counts are since the stage was built.
#[derive(Clone, Debug, Serialize)]
pub struct StageStatus {
    /// The stage's name.
    pub name: String,
    /// Runs that wait for a thread, without those that their clients have given up.
    pub queue_len: usize,
    /// The number of waiting runs at which new work is rejected.
    pub queue_max: usize,
    /// Bytes that the waiting runs take, bodies not counted.
    pub queue_bytes: usize,
    /// The number of such bytes at which new work is rejected.
    pub queue_bytes_max: usize,
    /// The predicted wait of a run that comes last: a client that has used less waits for less.
    pub predicted_wait_micros: u64,
    /// The wait that is allowed; new work is rejected if it would wait for more than nine tenths
    /// of it.
    pub queue_wait_max_micros: u64,
    /// The threads.
    pub threads: Threads,
    /// Runs that were rejected, or dropped before they began.
    pub sheds: Sheds,
    /// Runs that ended with a result.
    pub completed: u64,
    /// Runs that ended with a panic.
    pub panicked: u64,
    /// Runs that were given up before their end, because their client had left.
    pub cancelled: u64,
    /// Waits of runs for their first thread.
    pub wait: Quantiles,
    /// Times for which runs held a thread, waiting for wake-ups not included.
    pub service: Quantiles,
    /// The use of it by route and client, at most 32, those first that used most of late.
    pub shares: Vec<Share>,
}

/// The threads of a stage by their state at one moment.
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

/// The runs that a stage has shed, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sheds {
    /// Rejected: the predicted wait was too long.
    pub wait: u64,
    /// Rejected: the queue was full.
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
