//! The site's processes, as the kernel sees them.

use std::ops::RangeInclusive;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use procfs::process::{Process, all_processes};
use rustix::process::{Pid, Signal, kill_process};

/// The program that each replica runs.
const NAME: &str = "social";
const POLL: Duration = Duration::from_millis(1);
/// Longest time until a killed process is gone.
const GONE_MAX: Duration = Duration::from_secs(5);

/// The replicas, without their databases and balancer.
#[derive(Debug)]
pub(crate) struct Replicas(Vec<Process>);

/// Memory and CPU time at a moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// In kB of 1,024 bytes.
    pub(crate) memory_kb: f64,
    pub(crate) cpu_seconds: f64,
}

impl Replicas {
    /// Finds them in the process group of their starter.
    pub(crate) fn of(starter: i32) -> anyhow::Result<Self> {
        let is_one = |process: &Process| {
            let stat = process.stat();
            stat.is_ok_and(|stat| stat.pgrp == starter && stat.comm == NAME)
        };
        let found: Vec<Process> = all_processes()?.flatten().filter(is_one).collect();
        ensure!(!found.is_empty(), "no program {NAME:?} of group {starter}");
        Ok(Self(found))
    }

    /// Returns what they use together.
    pub(crate) fn usage(&self) -> anyhow::Result<Usage> {
        self.0.iter().try_fold(Usage::default(), |sum, process| {
            let own = usage(process)?;
            Ok(Usage {
                memory_kb: sum.memory_kb + own.memory_kb,
                cpu_seconds: sum.cpu_seconds + own.cpu_seconds,
            })
        })
    }

    /// Kills any of them as `kill -9` does; returns the moments right before that and when it was
    /// gone.
    pub(crate) fn kill_one(&self) -> anyhow::Result<RangeInclusive<Instant>> {
        let victim = fastrand::choice(&self.0).context("a replica")?;
        let begun = Instant::now();
        let pid = Pid::from_raw(victim.pid()).context("a process number")?;
        kill_process(pid, Signal::KILL).context("SIGKILL")?;
        // Its starter reaps it, which succeeds when its last thread has closed what it had open.
        while victim.stat().is_ok() {
            ensure!(begun.elapsed() < GONE_MAX, "a killed process stays");
            thread::sleep(POLL);
        }
        Ok(begun..=Instant::now())
    }
}

/// Returns the CPU time of this process.
pub(crate) fn own_cpu_seconds() -> anyhow::Result<f64> {
    Ok(usage(&Process::myself()?)?.cpu_seconds)
}

/// Returns the usage of a process, threads that have ended included.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn usage(process: &Process) -> anyhow::Result<Usage> {
    let stat = process.stat()?;
    let maps = process.smaps_rollup()?.memory_map_rollup;
    let resident = maps.iter().filter_map(|map| map.extension.map.get("Rss"));
    Ok(Usage {
        memory_kb: resident.sum::<u64>() as f64 / 1024.0,
        cpu_seconds: (stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64,
    })
}
