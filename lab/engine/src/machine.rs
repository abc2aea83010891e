//! The machine of a measurement.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

use procfs::{CurrentSI as _, KernelStats};
use serde::Serialize;

use crate::words::lab;

/// The part of the cores' time, in per cent, above which another program runs.
const BUSY_PERCENT: f64 = 5.0;
/// The time in which nothing is begun, to see what else runs.
const LOOK: Duration = Duration::from_secs(1);

/// The machine, and the state of the source.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) kernel: String,
    /// The part of the cores' time in which something ran, in the second before.
    pub(crate) busy_percent: f64,
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
        Self {
            cpu: model.unwrap_or("unknown CPU").to_owned(),
            cores: std::thread::available_parallelism().map_or(1, Into::into),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            busy_percent: busy_percent(),
            commit: commit(),
        }
    }

    pub(crate) fn was_busy(&self) -> bool {
        self.busy_percent > BUSY_PERCENT
    }
}

/// Looks at the cores for a second. A system that does not tell is taken for idle.
fn busy_percent() -> f64 {
    let before = ticks();
    thread::sleep(LOOK);
    let spent = before.zip(ticks());
    spent.map_or(0.0, |(before, after)| {
        let passed = |part: usize| u32::try_from(after[part].saturating_sub(before[part]));
        let [busy, all] = [0, 1].map(|part| passed(part).map_or(0.0, f64::from));
        100.0 * busy / all.max(1.0)
    })
}

/// Returns the ticks of all cores in which something ran, and those in all.
fn ticks() -> Option<[u64; 2]> {
    let total = KernelStats::current().ok()?.total;
    let idle = total.idle + total.iowait.unwrap_or(0);
    let rare = [total.irq, total.softirq, total.steal];
    let rare: u64 = rare.into_iter().flatten().sum();
    let busy = total.user + total.nice + total.system + rare;
    Some([busy, busy + idle])
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
