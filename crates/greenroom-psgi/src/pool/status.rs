use greenroom_stage::Sheds;
use serde::Serialize;

use super::shares::Share;

/// A snapshot of the queue before an application's workers. Times are in microseconds.
#[derive(Clone, Debug, Serialize)]
pub struct QueueStatus {
    /// The requests that wait for a worker.
    pub queue_len: usize,
    /// The limit of waiting requests, at which every new one is rejected.
    pub queue_max: usize,
    /// The time that a request may wait; one that would wait for more than nine tenths of it, or
    /// of twice as much in a burst, is rejected.
    pub queue_wait_max_micros: u64,
    /// The predicted wait of a new request on a new route from a client without records.
    pub predicted_wait_micros: u64,
    /// The time that the waiting requests are expected to take in workers.
    pub backlog_micros: u64,
    /// True if predicted waits were too long for longer than a burst may last.
    pub is_standing: bool,
    /// The number of routes (method and the first two segments of the path) that have proven
    /// short, so that workers are sent their requests ahead.
    pub short_routes: usize,
    /// The mean time of the latest 32 runs.
    pub busy_mean_micros: u64,
    /// The requests that were rejected, or dropped before they began.
    pub sheds: Sheds,
    /// The clients that used the workers of late, or were rejected: the 32 that wanted most.
    pub shares: Vec<Share>,
}
