//! Execution of installers: quietly, with a deadline, and with their last lines when they fail.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// The deadline of a step. The longest, building Autobahn's dependencies, takes half a minute where
/// a registry is near.
const DEADLINE: Duration = Duration::from_mins(15);

const LINES_SHOWN: usize = 12;

/// Returns a command that `timeout` of the coreutils ends at the deadline, with all that it
/// started.
pub(super) fn bounded(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("timeout");
    command
        .arg("--kill-after=10")
        .arg(DEADLINE.as_secs().to_string())
        .arg(program)
        .stdin(Stdio::null());
    command
}

/// Runs the command to its end.
pub(super) fn run(command: &mut Command) -> Result<()> {
    finished(command).map(drop)
}

/// Returns the command's standard output, without the white space around it.
pub(super) fn output_of(command: &mut Command) -> Result<String> {
    let output = finished(command)?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn finished(command: &mut Command) -> Result<Output> {
    let output = command
        .output()
        .with_context(|| format!("cannot start {command:?}"))?;
    if output.status.success() {
        return Ok(output);
    }
    bail!(
        "{command:?} ended with {}\n{}",
        output.status,
        last_lines(&output)
    );
}

/// Returns `true` if the command can be started and succeeds.
pub(super) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .output()
        .is_ok_and(|output| output.status.success())
}

/// Returns `true` if a shell would find the program, or root's would: daemons are not on every
/// user's path.
pub(super) fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin")])
        .any(|directory| directory.join(program).is_file())
}

fn last_lines(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n")
}
