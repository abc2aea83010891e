//! Servers as groups of processes, ended when dropped.

use std::env;
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

const POLL: Duration = Duration::from_millis(20);
const END_MAX: Duration = Duration::from_secs(10);
/// The last bytes of a log that an error quotes.
const LOG_BYTES: usize = 2_000;

/// A program with all that it started and that stays in its group of processes.
pub(crate) struct Family {
    child: Child,
    group: u32,
    log: PathBuf,
}

/// A process as the kernel tells it.
struct Member {
    pid: u32,
    parent: u32,
}

impl Family {
    /// Starts a program; it writes into a log.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(crate) fn start(mut command: Command, log: &Path) -> anyhow::Result<Self> {
        let file = File::create(log).context("a log")?;
        command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file);
        let child = command.process_group(0).spawn();
        let child = child.with_context(|| format!("cannot start {command:?}"))?;
        Ok(Self {
            group: child.id(),
            child,
            log: log.to_owned(),
        })
    }

    /// Follows a program that has made itself a daemon, with a group of its own.
    pub(crate) fn follow(&mut self, pid: u32) {
        self.group = parent_and_group(pid).map_or(self.group, |(_, group)| group);
    }

    /// Returns the process that was started first.
    pub(crate) fn first(&self) -> u32 {
        self.child.id()
    }

    /// Returns what was logged.
    pub(crate) fn log(&self) -> String {
        fs::read(&self.log).map_or_else(
            |error| error.to_string(),
            |bytes| String::from_utf8_lossy(&bytes).into_owned(),
        )
    }

    /// Returns how many of its processes there are.
    pub(crate) fn size(&mut self) -> usize {
        // A first process that has ended is not to be counted.
        let _status = self.child.try_wait();
        self.members().len()
    }

    /// Returns the children of one of its processes.
    pub(crate) fn children(&self, parent: u32) -> Vec<u32> {
        let members = self.members().into_iter();
        members
            .filter(|member| member.parent == parent)
            .map(|member| member.pid)
            .collect()
    }

    /// Waits until a condition holds.
    ///
    /// # Errors
    /// If it does not in time, with the end of the log.
    pub(crate) fn wait_until(
        &mut self,
        what: &str,
        max: Duration,
        mut is_so: impl FnMut(&mut Self) -> bool,
    ) -> anyhow::Result<()> {
        let deadline = Instant::now() + max;
        while !is_so(self) {
            if Instant::now() > deadline {
                let log = self.log();
                let start = log.len().saturating_sub(LOG_BYTES);
                let end = String::from_utf8_lossy(&log.as_bytes()[start..]);
                bail!("{what}: not in {max:?}\nthe log ends:\n{end}");
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    fn members(&self) -> Vec<Member> {
        let Ok(entries) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        let names = entries.flatten().map(|entry| entry.file_name());
        let pids = names.filter_map(|name| name.to_str()?.parse().ok());
        pids.filter_map(|pid| {
            let (parent, group) = parent_and_group(pid)?;
            (group == self.group).then_some(Member { pid, parent })
        })
        .collect()
    }
}

/// Returns the parent and the group of a process that has not ended.
fn parent_and_group(pid: u32) -> Option<(u32, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Returns the path of a program on the search path. nginx executes itself by the path that it was
/// started with.
///
/// # Errors
/// If it is not there.
pub(crate) fn found(program: &str) -> anyhow::Result<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut paths = env::split_paths(&path).map(|directory| directory.join(program));
    let found = paths.find(|path| path.is_file());
    found.with_context(|| format!("{program} is not installed"))
}

/// Tells whether a process is there and has not ended.
pub(crate) fn is_alive(pid: u32) -> bool {
    parent_and_group(pid).is_some()
}

/// Sends a signal to a process.
///
/// # Errors
/// If it is not there.
pub(crate) fn signal(pid: u32, signal: Signal) -> anyhow::Result<()> {
    kill(Pid::from_raw(i32::try_from(pid)?), signal).with_context(|| format!("{signal} to {pid}"))
}

/// Reads a file that holds the number of a process.
///
/// # Errors
/// If it is not there, or something else is in it.
pub(crate) fn read_pid(path: &Path) -> anyhow::Result<u32> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    text.trim()
        .parse()
        .with_context(|| format!("{}: {text:?}", path.display()))
}

/// Runs a program to its end, which must be a success within a time.
///
/// # Errors
/// If it is not, with what the program wrote.
pub(crate) fn run(mut command: Command, max: Duration) -> anyhow::Result<()> {
    let name = format!("{command:?}");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| name.clone())?;
    let deadline = Instant::now() + max;
    // What it writes fits into a pipe.
    while child.try_wait()?.is_none() {
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            bail!("{name}: it has not ended in {max:?}");
        }
        thread::sleep(POLL);
    }
    let output = child.wait_with_output()?;
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    ensure!(
        output.status.success(),
        "{name}: {}: {out}{err}",
        output.status
    );
    Ok(())
}

impl Drop for Family {
    fn drop(&mut self) {
        let Ok(group) = i32::try_from(self.group).map(Pid::from_raw) else {
            return;
        };
        for signal in [Signal::SIGTERM, Signal::SIGKILL] {
            let _gone = killpg(group, signal);
            let deadline = Instant::now() + END_MAX;
            while self.size() > 0 && Instant::now() < deadline {
                thread::sleep(POLL);
            }
        }
        let _status = self.child.wait();
    }
}
