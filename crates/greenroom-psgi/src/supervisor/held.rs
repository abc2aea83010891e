//! The ownership of worker processes.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::member::{END_WAIT, Member};
use super::shared::Shared;
use super::zygote::Forked;
use crate::error::EndStatus;
use crate::status::WorkerState;

/// The time that the zygote may take to report a worker's wait status once it has ended. It checks
/// every second, if no signal wakes it before.
const STATUS_WAIT: Duration = Duration::from_secs(3);

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
        let requests_max = shared.settings.limits.max_requests;
        let member = Member::new(key, forked.pid, generation, requests_max, process);
        let member = Arc::new(member);
        shared.add_member(Arc::clone(&member));
        Self {
            member,
            shared: Arc::clone(shared),
            ended: forked.ended,
        }
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
