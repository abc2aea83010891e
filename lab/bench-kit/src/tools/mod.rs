//! The programs that make load, and their output.
//!
//! Each runs on the core of the load, to its end.

mod ab;
mod greenroom;
mod priority;

use std::process::{Command, Output, Stdio};

use anyhow::{Context, bail, ensure};

use crate::measure::ChildrenCpu;

pub use ab::{Ab, AbCounts, AbReport};
pub use greenroom::{GreenroomBench, GreenroomReport, Latency, Requests, Stream, Stretch};
pub use priority::Priority;

/// Programs that a driver may start, and the packages that they are in.
const PACKAGES: [(&str, &str); 2] = [("ab", "apache2-utils"), ("taskset", "util-linux")];

/// Fails at once, and with the remedy, when one of `ab` and `taskset` is needed and not there.
///
/// # Errors
/// The packages that are missing.
pub fn require<'a>(programs: impl IntoIterator<Item = &'a str>) -> anyhow::Result<()> {
    let needed: Vec<&str> = programs.into_iter().collect();
    let missing = PACKAGES
        .iter()
        .filter(|(program, _)| needed.contains(program) && !is_installed(program))
        .map(|(_, package)| *package);
    let missing: Vec<&str> = missing.collect();
    if !missing.is_empty() {
        bail!(
            "programs are missing; as root: apt-get install {}",
            missing.join(" ")
        );
    }
    Ok(())
}

/// Returns true if a program is on the search path.
#[must_use]
pub fn is_installed(program: &str) -> bool {
    let found = Command::new("which")
        .arg(program)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    found.is_ok_and(|status| status.success())
}

/// A program that ran to its end.
#[derive(Debug)]
pub struct Finished {
    /// Its standard output.
    pub stdout: String,
    /// Its CPU time, from its start to its end.
    pub cpu: ChildrenCpu,
}

/// Runs a program to its end, which must be a success.
///
/// # Errors
/// The program's own output, if it fails.
pub fn run(command: &mut Command) -> anyhow::Result<Finished> {
    run_accepting(command, &[0])
}

fn run_accepting(command: &mut Command, statuses: &[i32]) -> anyhow::Result<Finished> {
    let name = format!("{command:?}");
    let before = ChildrenCpu::now()?;
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {name}"))?;
    let cpu = before.until(ChildrenCpu::now()?);
    let stderr = String::from_utf8_lossy(&stderr);
    let accepted = status.code().is_some_and(|code| statuses.contains(&code));
    ensure!(accepted, "{name}: {status}: {}", stderr.trim());
    let stdout =
        String::from_utf8(stdout).with_context(|| format!("{name}: output is not text"))?;
    Ok(Finished { stdout, cpu })
}
