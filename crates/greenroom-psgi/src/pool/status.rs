use greenroom_stage::Sheds;
use serde::Serialize;

use super::Share;

/// The queue before an application's workers at one moment. Times are in microseconds.
#[derive(Clone, Debug, Serialize)]
pub struct QueueStatus {
    /// Requests that wait for a worker.
    pub queue_len: usize,
    /// With how many waiting every newcomer is refused.
    pub queue_max: usize,
    /// How long a request may wait; refused is whoever would wait for more than nine tenths of it, or of
    /// twice as much in a burst.
    pub queue_wait_max_micros: u64,
    /// How long a newcomer would wait of whose client nothing is known, on a new route.
    pub predicted_wait_micros: u64,
    /// What all that waits is expected to keep workers busy.
    pub backlog_micros: u64,
    /// Whether predicted waits were too long for longer than a burst may last.
    pub is_standing: bool,
    /// How many routes (method and the first two segments of the path) have proven short, so that
    /// workers are sent their requests ahead.
    pub short_routes: usize,
    /// Mean time for which a run kept its worker busy, of the latest 32.
    pub busy_mean_micros: u64,
    /// What was refused, or dropped before it began.
    pub sheds: Sheds,
    /// Who used the workers of late, or was refused: the 32 that wanted most.
    pub shares: Vec<Share>,
}
