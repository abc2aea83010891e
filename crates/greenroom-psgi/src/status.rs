use serde::Serialize;

use crate::pool::QueueStatus;

/// A gateway at one moment. Counters count from its start.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct GatewayStatus {
    /// The application's file.
    pub application: String,
    /// The path below which it is served; empty for all paths.
    pub mount: String,
    /// Which start of the application serves: 1 at first, one more after each that took over.
    pub generation: u32,
    /// How many workers there are to be.
    pub workers_wanted: usize,
    /// The worker processes, the oldest first.
    pub workers: Vec<WorkerStatus>,
    /// Processes that were started in place of one that had ended unasked: workers, and whole
    /// generations whose first process was lost.
    pub restarts: u64,
    /// Workers that were killed because they made no progress.
    pub hung: u64,
    /// Workers that were replaced because of their requests, their memory, or their own wish.
    pub retired: u64,
    /// Reloads that came to serve.
    pub reloads: u64,
    /// Reloads that failed, so that what served before went on.
    pub reloads_failed: u64,
    /// What waits for workers.
    #[serde(flatten)]
    pub queue: QueueStatus,
}

/// A worker process at one moment.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct WorkerStatus {
    /// Its number within the gateway, never used twice.
    pub key: u32,
    /// Its process.
    pub pid: i32,
    /// The start of the application that it belongs to.
    pub generation: u32,
    /// What it is at.
    pub state: WorkerState,
    /// `blocking`, or the event loop that drives it; empty while it starts.
    pub mode: String,
    /// Requests that were given to it, and that it has not given back.
    pub running: u32,
    /// Requests of its own that wait for an event in it.
    pub waiting: u32,
    /// Requests that were given to it and are ended.
    pub served: u64,
    /// For how many microseconds the requests that it was given have made no progress; 0 if it has none.
    /// Beyond [`timeout`](crate::Builder::timeout) it counts as hung, and is killed.
    pub stuck_micros: u64,
    /// Its resident memory in bytes, shared pages included; 0 if it is gone.
    pub rss_bytes: u64,
    /// For how many seconds it exists.
    pub age_seconds: u64,
}

/// What a worker process is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum WorkerState {
    /// It loads the application.
    Starting,
    /// It serves.
    Ready,
    /// It serves until its successor is ready.
    Retiring,
    /// It finishes what it has begun.
    Draining,
    /// It is asked to end, or killed.
    Ending,
    /// It is gone.
    Gone,
}
