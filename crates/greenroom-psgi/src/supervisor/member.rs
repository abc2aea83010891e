//! A worker process, from its fork to its end.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, pidfd_send_signal};
use tokio::io::unix::AsyncFd;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::memory;
use crate::status::WorkerState;

/// The time that a worker may exist after it has closed its connections. One with much memory takes
/// a while to end, and so does one whose `END` blocks have something to do.
pub(super) const END_WAIT: Duration = Duration::from_secs(10);

/// The shared state of a worker.
pub(super) struct Member {
    pub(super) key: u32,
    pub(super) pid: Pid,
    pub(super) generation: u32,
    pub(super) born: Instant,
    /// Notified when it may have become idle.
    pub(super) may_be_idle: Notify,
    requests_max: u64,
    ready: OnceLock<Ready>,
    state: watch::Sender<WorkerState>,
    is_hung: AtomicBool,
    is_late: AtomicBool,
    process: AsyncFd<OwnedFd>,
}

struct Ready {
    mode: String,
    since: Instant,
    /// Its resident bytes then.
    baseline: u64,
}

/// The reason why a worker is to be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// It has served this number of requests.
    Requests(u64),
    /// It holds this number of bytes.
    Memory(u64),
    /// The application asked for it.
    Asked,
}

impl Member {
    /// Creates the state of a worker that was just forked; `process` is a pidfd of it.
    pub(super) fn new(
        key: u32,
        pid: Pid,
        generation: u32,
        requests_max: u64,
        process: AsyncFd<OwnedFd>,
    ) -> Self {
        Self {
            key,
            pid,
            generation,
            born: Instant::now(),
            may_be_idle: Notify::new(),
            requests_max: jittered(requests_max),
            ready: OnceLock::new(),
            state: watch::Sender::new(WorkerState::Starting),
            is_hung: AtomicBool::new(false),
            is_late: AtomicBool::new(false),
            process,
        }
    }

    pub(super) fn note_ready(&self, mode: String) {
        let ready = Ready {
            mode,
            since: Instant::now(),
            baseline: memory::resident_bytes(self.pid).unwrap_or(0),
        };
        // A worker reports it once.
        self.ready.set(ready).ok();
        self.advance(WorkerState::Ready);
    }

    /// Moves on to `state`; returns `false` if it was there or further already.
    pub(super) fn advance(&self, state: WorkerState) -> bool {
        self.state.send_if_modified(|now| {
            let moves = *now < state;
            *now = (*now).max(state);
            moves
        })
    }

    pub(super) fn state(&self) -> WorkerState {
        *self.state.borrow()
    }

    /// Waits until it is at `state` or further.
    pub(super) async fn reached(&self, state: WorkerState) {
        let mut states = self.state.subscribe();
        // The sender lives as long as we are borrowed.
        states.wait_for(|now| *now >= state).await.ok();
    }

    /// Returns its mode, `blocking` or an event loop; empty while it starts.
    pub(super) fn mode(&self) -> &str {
        self.ready.get().map_or("", |ready| &ready.mode)
    }

    /// Returns its resident bytes when it was ready; 0 before.
    pub(super) fn baseline(&self) -> u64 {
        self.ready.get().map_or(0, |ready| ready.baseline)
    }

    /// Returns the time that it has been ready, by now or by its end.
    pub(super) fn health(&self) -> Duration {
        self.ready
            .get()
            .map_or(Duration::ZERO, |ready| ready.since.elapsed())
    }

    /// Returns `true` if it has served as many requests as it may.
    pub(super) fn has_served_enough(&self, served: u64) -> bool {
        served >= self.requests_max
    }

    /// Waits for the process' end.
    pub(super) async fn ended(&self) {
        // An error means that the runtime ends, and all workers with it.
        self.process.readable().await.ok();
    }

    /// Kills it, if it still exists. The pidfd makes sure that it is not another process by now.
    pub(super) fn kill(&self) {
        pidfd_send_signal(&self.process, Signal::KILL).ok();
    }

    /// Notes that it hangs; returns `false` if that was known.
    pub(super) fn note_hung(&self) -> bool {
        !self.is_hung.swap(true, Ordering::Relaxed)
    }

    /// Kills it because it did not finish in time.
    pub(super) fn kill_late(&self) {
        self.is_late.store(true, Ordering::Relaxed);
        self.kill();
    }

    /// Returns `true` if it had to be killed because it did not finish in time.
    pub(super) fn was_late(&self) -> bool {
        self.is_late.load(Ordering::Relaxed)
    }
}

impl fmt::Display for Member {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "worker {} (process {})",
            self.key,
            self.pid.as_raw_nonzero()
        )
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requests(served) => write!(out, "it has served {served} requests"),
            Self::Memory(bytes) => {
                write!(out, "it holds {bytes} bytes of memory, beyond max_rss")
            }
            Self::Asked => out.write_str("the application asked for it"),
        }
    }
}

/// Takes off up to a tenth, by chance, so that workers of one age are not replaced together.
fn jittered(requests: u64) -> u64 {
    requests - fastrand::u64(0..=requests / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requests_of_a_worker_are_at_most_what_was_said_and_a_tenth_less() {
        let seen: Vec<_> = (0..1_000).map(|_| jittered(100)).collect();
        assert!(seen.iter().all(|requests| (90..=100).contains(requests)));
        assert!(seen.iter().any(|requests| *requests != seen[0]));
        assert_eq!(jittered(1), 1);
    }
}
