//! The programs that make load, and what they print.

mod ab;
mod client;
mod wrk;

use std::process::{Command, Output, Stdio};

use anyhow::{Context, bail, ensure};

pub(crate) use ab::Ab;
pub(crate) use client::{Burst, Idle, OpenLoop};
pub(crate) use wrk::Wrk;

use crate::cases::Case;

/// Fails at once, and with the remedy, when a case needs a program that is not there.
pub(crate) fn require(cases: &[Case]) -> anyhow::Result<()> {
    let mut missing: Vec<&str> = Vec::new();
    for (tool, package) in [
        ("taskset", "util-linux"),
        ("wrk", "wrk"),
        ("ab", "apache2-utils"),
    ] {
        let needed = cases.iter().any(|case| case.tools().contains(&tool));
        if needed && !is_installed(tool) {
            missing.push(package);
        }
    }
    if !missing.is_empty() {
        bail!(
            "programs are missing; as root: apt-get install {}",
            missing.join(" ")
        );
    }
    Ok(())
}

/// Whether a program is on the search path.
pub(crate) fn is_installed(program: &str) -> bool {
    let found = Command::new("which")
        .arg(program)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    found.is_ok_and(|status| status.success())
}

fn run(command: &mut Command) -> anyhow::Result<String> {
    let name = format!("{command:?}");
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .output()
        .with_context(|| format!("cannot run {name}"))?;
    let stderr = String::from_utf8_lossy(&stderr);
    ensure!(status.success(), "{name}: {status}: {}", stderr.trim());
    String::from_utf8(stdout).with_context(|| format!("{name}: output is not text"))
}
