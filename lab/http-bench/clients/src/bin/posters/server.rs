//! The process of the server, which is sent a signal and watched until it ends.

use std::os::fd::OwnedFd;
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use tokio::time::sleep;

/// The interval of checks for the end of the process.
const LOOK: Duration = Duration::from_millis(5);

/// The signal that ends the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EndSignal {
    /// SIGQUIT, by which nginx ends in order
    Quit,
    /// SIGTERM, by which all others do
    Term,
}

/// A process that is not ours.
#[derive(Debug)]
pub(crate) struct Server {
    pid: Pid,
    end: OwnedFd,
}

impl Server {
    pub(crate) fn new(pid: i32) -> anyhow::Result<Self> {
        let pid = Pid::from_raw(pid).context("no such process")?;
        let end = pidfd_open(pid, PidfdFlags::NONBLOCK).context("the server's process")?;
        Ok(Self { pid, end })
    }

    pub(crate) fn send(&self, signal: EndSignal) -> anyhow::Result<()> {
        let signal = match signal {
            EndSignal::Quit => Signal::QUIT,
            EndSignal::Term => Signal::TERM,
        };
        kill_process(self.pid, signal).context("sending the signal")
    }

    /// Waits until the process has ended.
    pub(crate) async fn ended(&self) -> anyhow::Result<()> {
        while !self.has_ended()? {
            sleep(LOOK).await;
        }
        Ok(())
    }

    fn has_ended(&self) -> anyhow::Result<bool> {
        let mut ends = [PollFd::new(&self.end, PollFlags::IN)];
        let ready = poll(&mut ends, Some(&Timespec::default()));
        Ok(ready.context("watching the server's process")? > 0)
    }
}
