//! Servers under callgrind.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::load::Load;

/// Runs of each kind, of which the least counts. What disturbs a server only adds: a thread that
/// loses its processor makes a handler look long, and the placement moves its route.
const RUNS: usize = 3;
/// The longest time in which a server listens.
const START_MAX: Duration = Duration::from_mins(1);
/// The interval of looks whether it does.
const LOOK: Duration = Duration::from_millis(20);

/// Returns valgrind and the compiler, as they name themselves.
///
/// # Errors
/// If one of them is not installed.
pub(crate) fn tools() -> anyhow::Result<String> {
    let valgrind = version("valgrind", "on Debian: apt-get install valgrind")?;
    let rustc = version("rustc", "https://rustup.rs")?;
    Ok(format!("{valgrind}, {rustc}"))
}

fn version(program: &str, how: &str) -> anyhow::Result<String> {
    match Command::new(program).arg("--version").output() {
        Ok(output) => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!("{program} is NOT INSTALLED, so nothing is counted ({how})")
        }
        Err(error) => Err(error).with_context(|| format!("{program} --version")),
    }
}

/// Returns the instructions of a request.
///
/// # Errors
/// If the server does not serve, or callgrind does not tell its total.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
pub(crate) fn count(server: &Path, kind: &[&str], load: &Load) -> anyhow::Result<f64> {
    let [few, many] = load.requests;
    let least = |requests| {
        let runs = (0..RUNS).map(|_| total(server, kind, load, requests));
        let totals = runs.collect::<anyhow::Result<Vec<_>>>();
        let totals = totals.with_context(|| kind.join(" "))?;
        totals.into_iter().min().context("no run")
    };
    let ((few_total, few), (many_total, many)) = (least(few)?, least(many)?);
    ensure!(
        many_total > few_total,
        "more requests took fewer instructions"
    );
    Ok((many_total - few_total) as f64 / (many - few) as f64)
}

/// Returns the instructions of a run, and its requests.
fn total(
    server: &Path,
    kind: &[&str],
    load: &Load,
    requests: usize,
) -> anyhow::Result<(u64, usize)> {
    let profile = profile(server, kind)?;
    let port = free_port()?;
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--tool=callgrind"]);
    command.arg(format!("--callgrind-out-file={}", profile.display()));
    command.arg(server).args(kind);
    command.arg("--listen").arg(format!("127.0.0.1:{port}"));
    let mut running = Running(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?);
    running.wait_for(port)?;
    let requests = load.send(port, requests)?;
    running.end()?;
    let written = fs::read_to_string(&profile);
    let written = written.with_context(|| profile.display().to_string())?;
    Ok((total_of(&written)?, requests))
}

/// Returns where the profile is kept, for `callgrind_annotate`; the next run writes over it.
fn profile(server: &Path, kind: &[&str]) -> anyhow::Result<PathBuf> {
    let directory = server.with_file_name("instructions");
    fs::create_dir_all(&directory)?;
    Ok(directory.join(format!("{}.callgrind", kind.join(""))))
}

fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

/// Returns the sum that callgrind writes at the end of a profile.
fn total_of(profile: &str) -> anyhow::Result<u64> {
    let mut lines = profile.lines();
    let total = lines.find_map(|line| line.strip_prefix("totals: "));
    let total = total.context("callgrind wrote no total")?;
    Ok(total.trim().parse()?)
}

/// A server under valgrind; it is killed if it is dropped before its end.
struct Running(Child);

impl Running {
    /// Waits until it listens. What is accepted and says nothing costs it nothing later.
    fn wait_for(&mut self, port: u16) -> anyhow::Result<()> {
        let until = Instant::now() + START_MAX;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if let Some(status) = self.0.try_wait()? {
                bail!("the server ended before it listened: {status}");
            }
            ensure!(Instant::now() < until, "the server does not listen");
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Ends it by a signal that it does not catch, upon which callgrind writes its profile.
    fn end(mut self) -> anyhow::Result<()> {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.context("a process without id")?, Signal::TERM)?;
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only where it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_the_last_line_of_a_profile() {
        let profile = "events: Ir\nsummary: 12\n\nfn=(1) main\n16 12\n\ntotals: 345\n";
        assert_eq!(total_of(profile).expect("a total"), 345);
        assert!(total_of("events: Ir\n").is_err());
    }
}
