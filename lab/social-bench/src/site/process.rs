//! Programs as child processes, ended when dropped.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

const START_MAX: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(10);
/// Lines of a log that are shown when its program fails.
const LINES_SHOWN: usize = 20;

/// A program that listens; killed with this value.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts it and waits until it accepts connections; its output goes to `NAME.log` in the
    /// directory.
    pub(crate) fn start(
        name: &str,
        command: &mut Command,
        directory: &Path,
        address: SocketAddr,
    ) -> anyhow::Result<Self> {
        let log = directory.join(format!("{name}.log"));
        let out = File::create(&log).with_context(|| log.display().to_string())?;
        let errors = out.try_clone().context("a log")?;
        command.stdin(Stdio::null()).stdout(out).stderr(errors);
        let child = command.spawn();
        let child = child.with_context(|| format!("cannot start {name}: is it installed?"))?;
        let mut process = Self { child, log };
        let is_there = || TcpStream::connect(address).is_ok();
        process
            .wait_until(is_there)
            .with_context(|| format!("{name} at {address}"))?;
        Ok(process)
    }

    /// Waits until a condition is true.
    pub(crate) fn wait_until(&mut self, is_true: impl Fn() -> bool) -> anyhow::Result<()> {
        let deadline = Instant::now() + START_MAX;
        while !is_true() {
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended with {status}:\n{}", self.end_of_log());
            }
            if Instant::now() > deadline {
                bail!("not ready after {START_MAX:?}:\n{}", self.end_of_log());
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    pub(crate) fn pid(&self) -> u32 {
        // `taskset` replaces itself by the program.
        self.child.id()
    }

    /// Kills it as `kill -9` does; returns the moments right before that and when it was gone.
    pub(crate) fn kill(&mut self) -> anyhow::Result<RangeInclusive<Instant>> {
        let begun = Instant::now();
        self.child.kill().context("SIGKILL")?;
        self.child.wait().context("the end of a process")?;
        Ok(begun..=Instant::now())
    }

    fn end_of_log(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns an address whose port was bound and released: the next to bind it is the program that
/// gets it as a flag.
pub(crate) fn free_address() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
    listener.local_addr().context("no free port")
}
