//! A worker process, from its fork to its end.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{fmt, fs, io};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::{Instant, timeout};

use super::memory;
use super::shared::Shared;
use super::zygote::Forked;
use crate::error::EndStatus;
use crate::status::WorkerState;

/// The time that the zygote may take to report a worker's wait status once it has ended. It checks
/// every second, if no signal wakes it before.
const STATUS_WAIT: Duration = Duration::from_secs(3);

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
    requests_max: Option<u64>,
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
        self.requests_max.is_some_and(|most| served >= most)
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

/// The ownership of a worker: dropping it kills the process and removes all traces.
pub(super) struct Held {
    pub(super) member: Arc<Member>,
    shared: Arc<Shared>,
    ended: oneshot::Receiver<u32>,
}

impl Held {
    /// Takes on a worker that was just forked, with a handle on its process.
    pub(super) fn new(
        shared: &Arc<Shared>,
        key: u32,
        generation: u32,
        forked: Forked,
        process: AsyncFd<OwnedFd>,
    ) -> Self {
        let member = Arc::new(Member {
            key,
            pid: forked.pid,
            generation,
            born: Instant::now(),
            may_be_idle: Notify::new(),
            requests_max: shared.settings.max_requests.map(jittered),
            ready: OnceLock::new(),
            state: watch::Sender::new(WorkerState::Starting),
            is_hung: AtomicBool::new(false),
            is_late: AtomicBool::new(false),
            process,
        });
        shared.add_member(Arc::clone(&member));
        Self {
            member,
            shared: Arc::clone(shared),
            ended: forked.ended,
        }
    }

    pub(super) fn note_ready(&self, mode: String) {
        let ready = Ready {
            mode,
            since: Instant::now(),
            baseline: memory::resident_bytes(self.member.pid).unwrap_or(0),
        };
        // A worker reports it once.
        self.member.ready.set(ready).ok();
        self.member.advance(WorkerState::Ready);
    }

    /// Kills the process, if it still exists, and removes all traces.
    pub(super) fn remove(&self) {
        let key = self.member.key;
        self.member.kill();
        self.shared.pool.remove(key);
        self.shared.remove_member(key);
        // The zygote may have removed it already.
        fs::remove_file(self.shared.socket(key)).ok();
        self.member.advance(WorkerState::Gone);
    }

    /// Returns the status with which it ended; it must have begun to end.
    pub(super) async fn status(&mut self) -> EndStatus {
        // If it does not end, the status is unknown.
        timeout(END_WAIT, self.member.ended()).await.ok();
        end_status(&mut self.ended).await
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Returns the status that the zygote reports of a process that has begun to end.
pub(super) async fn end_status(ended: &mut oneshot::Receiver<u32>) -> EndStatus {
    let status = timeout(STATUS_WAIT, ended).await;
    EndStatus(status.ok().and_then(Result::ok).map(EndStatus::of_wait))
}

/// Opens a handle on a process; `None` if there is none by this number any more.
pub(super) fn process(pid: Pid) -> io::Result<Option<AsyncFd<OwnedFd>>> {
    match pidfd_open(pid, PidfdFlags::NONBLOCK) {
        Ok(process) => watched(process).map(Some),
        Err(Errno::SRCH) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[expect(
    deprecated,
    reason = "its successor is unsafe, for types whose descriptor may change or be closed; an \
              OwnedFd's cannot"
)]
fn watched(process: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(process, Interest::READABLE)
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
