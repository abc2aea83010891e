//! A snapshot of the kernel's counters of a process.

use std::collections::HashSet;
use std::fs;
use std::time::Duration;

use procfs::process::{Process, Stat};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity};

/// The counters of a process.
#[derive(Debug)]
pub(super) struct Reading {
    /// Its start, in the kernel's ticks since the machine's start.
    pub(super) started: u64,
    pub(super) is_zombie: bool,
    /// CPU time of the whole process, threads that have ended included.
    pub(super) own: Ticks,
    /// CPU time of its children that ended and were waited for, and of theirs.
    pub(super) reaped: Ticks,
    pub(super) rss_bytes: u64,
    /// The threads that there are.
    pub(super) threads: Vec<ThreadReading>,
}

/// The counters of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadReading {
    pub(super) tid: i32,
    pub(super) ran_ns: u64,
    pub(super) waited_ns: u64,
}

/// CPU time in the kernel's ticks, mostly 100 per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ticks {
    pub(super) user: u64,
    pub(super) system: u64,
}

impl Reading {
    /// Reads the counters; `None` when the process has ended or may not be seen.
    pub(super) fn of(pid: i32) -> Option<Self> {
        let process = Process::new(pid).ok()?;
        let stat = process.stat().ok()?;
        Some(Self {
            started: stat.starttime,
            is_zombie: stat.state == 'Z',
            own: Ticks {
                user: stat.utime,
                system: stat.stime,
            },
            reaped: Ticks {
                user: stat.cutime.try_into().unwrap_or(0),
                system: stat.cstime.try_into().unwrap_or(0),
            },
            rss_bytes: stat.rss * procfs::page_size(),
            threads: threads_of(&process)?,
        })
    }

    pub(super) fn thread_count(&self) -> u32 {
        u32::try_from(self.threads.len()).unwrap_or(u32::MAX)
    }

    /// Adds the cores on which its threads may run. Each thread is asked, since a server may pin
    /// each to another.
    pub(super) fn add_cores_to(&self, cores: &mut CpuSet) {
        for thread in &self.threads {
            let allowed = Pid::from_raw(thread.tid).map(|tid| sched_getaffinity(Some(tid)));
            if let Some(Ok(allowed)) = allowed {
                for core in (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)) {
                    cores.set(core);
                }
            }
        }
    }
}

impl Ticks {
    pub(super) fn total(self) -> Duration {
        Self::duration(self.user + self.system)
    }

    pub(super) fn duration(ticks: u64) -> Duration {
        Duration::from_nanos(ticks * 1_000_000_000 / procfs::ticks_per_second().max(1))
    }

    pub(super) fn since(self, earlier: Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.user += other.user;
        self.system += other.system;
    }
}

fn threads_of(process: &Process) -> Option<Vec<ThreadReading>> {
    let tasks = process.tasks().ok()?.flatten();
    let reading = |task: procfs::process::Task| {
        // A thread that ends meanwhile has no account any more; on a kernel without these accounts
        // the ticks count.
        let account = task.schedstat().ok();
        ThreadReading {
            tid: task.tid,
            ran_ns: account.as_ref().map_or(0, |times| times.sum_exec_runtime),
            waited_ns: account.map_or(0, |times| times.run_delay),
        }
    };
    Some(tasks.map(reading).collect())
}

pub(super) fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

pub(super) fn start_of(pid: i32) -> Option<u64> {
    stat_of(pid).map(|stat| stat.starttime)
}

/// Returns the process with its parent and its start.
pub(super) fn parent_and_start_of(pid: i32) -> Option<(i32, i32, u64)> {
    stat_of(pid).map(|stat| (pid, stat.ppid, stat.starttime))
}

fn stat_of(pid: i32) -> Option<Stat> {
    Process::new(pid).ok()?.stat().ok()
}

/// Returns the numbers of all processes. Listing `/proc` is cheap, reading each process would not
/// be.
pub(super) fn all_pids() -> HashSet<i32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return HashSet::new();
    };
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    entries.flatten().filter_map(number).collect()
}
