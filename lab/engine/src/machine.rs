//! The machine of a measurement.

use std::fs;
use std::ops::Sub;
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
    /// Of the time during the experiment in which a core of this virtual machine had something to
    /// run, the part that its host gave to others, in per cent.
    pub(crate) stolen_percent: f64,
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
            stolen_percent: 0.0,
            commit: commit(),
        }
    }

    pub(crate) fn was_busy(&self) -> bool {
        self.busy_percent > BUSY_PERCENT
    }
}

/// Looks at the cores for a second.
fn busy_percent() -> f64 {
    let before = Ticks::now();
    thread::sleep(LOOK);
    let spent = Ticks::now() - before;
    percent(spent.busy, spent.busy + spent.idle)
}

fn percent(part: u64, of: u64) -> f64 {
    let [part, of] = [part, of].map(|ticks| u32::try_from(ticks).map_or(0.0, f64::from));
    100.0 * part / of.max(1.0)
}

/// Ticks of all cores. A system that does not tell them has none, and is taken for idle.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ticks {
    /// With something to run, those included in which the host ran something else.
    busy: u64,
    idle: u64,
    stolen: u64,
}

impl Ticks {
    /// Returns those since the start of the system.
    pub(crate) fn now() -> Self {
        let Ok(KernelStats { total, .. }) = KernelStats::current() else {
            return Self::default();
        };
        let stolen = total.steal.unwrap_or(0);
        let interrupts = total.irq.unwrap_or(0) + total.softirq.unwrap_or(0);
        Self {
            busy: total.user + total.nice + total.system + interrupts + stolen,
            idle: total.idle + total.iowait.unwrap_or(0),
            stolen,
        }
    }

    /// Returns what the host took since, of what was busy, in per cent.
    pub(crate) fn stolen_percent_since(self) -> f64 {
        let spent = Self::now() - self;
        percent(spent.stolen, spent.busy)
    }
}

impl Sub for Ticks {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            busy: self.busy.saturating_sub(earlier.busy),
            idle: self.idle.saturating_sub(earlier.idle),
            stolen: self.stolen.saturating_sub(earlier.stolen),
        }
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
