use std::path::PathBuf;
use std::sync::Arc;

use rustix::process::Pid;
use tokio::sync::watch;

/// A worker process that takes requests.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) key: u32,
    pub(crate) pid: Pid,
    pub(crate) socket: PathBuf,
    /// True if an event loop drove it when it was ready.
    pub(crate) is_event_driven: bool,
    is_gone: watch::Sender<bool>,
}

impl Worker {
    pub(crate) fn new(key: u32, pid: Pid, socket: PathBuf, is_event_driven: bool) -> Arc<Self> {
        Arc::new(Self {
            key,
            pid,
            socket,
            is_event_driven,
            is_gone: watch::Sender::new(false),
        })
    }

    /// Returns when the process is gone. Its sockets may outlive it, in a child that its
    /// application has forked.
    pub(crate) async fn gone(&self) {
        // This cannot fail: the sender is here.
        let _ = self.is_gone.subscribe().wait_for(|is_gone| *is_gone).await;
    }

    pub(super) fn note_gone(&self) {
        self.is_gone.send_replace(true);
    }
}

/// The reason for a worker's end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It ended of itself, or was killed from outside.
    #[default]
    Crashed,
    /// It is killed because its runs made no progress.
    Hung,
    /// It had to end, and did not in time.
    Retired,
}
