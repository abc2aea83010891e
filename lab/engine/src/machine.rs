//! The machine of a measurement.

use std::fs;
use std::process::Command;

use serde::Serialize;

use crate::words::lab;

/// The load average above which another program runs.
const BUSY: f64 = 0.5;

/// The machine, and the state of the source.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) kernel: String,
    pub(crate) load_average: f64,
    /// The commit, with a `+` if files differ from it.
    pub(crate) commit: String,
}

impl Machine {
    pub(crate) fn describe() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let cpu = read("/proc/cpuinfo");
        let model = cpu
            .lines()
            .find_map(|line| line.strip_prefix("model name\t: "));
        let load = read("/proc/loadavg");
        Self {
            cpu: model.unwrap_or("unknown CPU").to_owned(),
            cores: std::thread::available_parallelism().map_or(1, Into::into),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load_average: load
                .split(' ')
                .next()
                .and_then(|one| one.parse().ok())
                .unwrap_or(0.0),
            commit: commit(),
        }
    }

    pub(crate) fn was_busy(&self) -> bool {
        self.load_average > BUSY
    }
}

fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .current_dir(lab())
            .args(arguments)
            .output()
            .ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_default();
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).unwrap_or_default();
    format!("{commit}{}", if changed.is_empty() { "" } else { "+" })
}
