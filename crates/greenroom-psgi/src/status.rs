use serde::Serialize;

use crate::pool::QueueStatus;

/// A snapshot of a gateway. Counters count from its start.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct GatewayStatus {
    /// The application's file.
    pub application: String,
    /// The path below which it is served; empty for all paths.
    pub mount: String,
    /// Its [label](crate::Builder::label), by default the mount.
    pub label: String,
    /// The number of the start that serves: 1 at first, one more after each that took over.
    pub generation: u32,
    /// The number of workers that there should be.
    pub workers_wanted: usize,
    /// The worker processes, the oldest first.
    pub workers: Vec<WorkerStatus>,
    /// Processes that were started in place of one that had ended unexpectedly: workers, and whole
    /// generations whose first process was lost.
    pub restarts: u64,
    /// Workers that were killed because they made no progress.
    pub hung: u64,
    /// Workers that were replaced because of their requests, their memory, or their own wish.
    pub retired: u64,
    /// Reloads after which the new generation serves.
    pub reloads: u64,
    /// Reloads that failed, so that the old generation went on.
    pub reloads_failed: u64,
    /// The queue before the workers.
    #[serde(flatten)]
    pub queue: QueueStatus,
}

/// A snapshot of a worker process.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct WorkerStatus {
    /// Its number within the gateway, never used twice.
    pub key: u32,
    /// Its process id.
    pub pid: i32,
    /// The number of the start that it belongs to.
    pub generation: u32,
    /// Its state.
    pub state: WorkerState,
    /// `blocking`, or the event loop that drives it; empty while it starts.
    pub mode: String,
    /// Requests that were sent to it, and that it has not released.
    pub running: u32,
    /// Requests of its own that wait for an event in it.
    pub waiting: u32,
    /// Requests that were sent to it and have ended.
    pub served: u64,
    /// The microseconds for which its requests have made no progress; 0 if it has none. Beyond
    /// [`timeout`](crate::Builder::timeout) it counts as hung, and is killed.
    pub stuck_micros: u64,
    /// Its resident memory in bytes, shared pages included; 0 if it is gone.
    pub rss_bytes: u64,
    /// The seconds since it was forked.
    pub age_seconds: u64,
}

/// The state of a worker process. Later states are greater.
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
    /// It finishes the requests that it has begun.
    Draining,
    /// It is asked to end, or killed.
    Ending,
    /// It is gone.
    Gone,
}
