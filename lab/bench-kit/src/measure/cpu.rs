//! CPU time of a process: its sum to the nanosecond, its division into user and system by the
//! kernel's ticks.

use std::fs;
use std::time::Duration;

use anyhow::{Context, bail};

/// Fields of `/proc/PID/stat` after the parenthesised name, counted from 0.
const USER_TICKS_FIELD: usize = 11;

/// The counters of a process at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuReading {
    on_cpu_ns: u64,
    waited_ns: u64,
    user_ticks: u64,
    system_ticks: u64,
}

/// The CPU time of a process between two readings.
#[derive(Clone, Copy, Debug)]
pub struct CpuTime {
    /// Time on the core, of all threads.
    pub total: Duration,
    /// Share of the ticks that found it in user mode.
    pub user_share: f64,
    /// Time in which it could have run but another program had the core.
    pub waited: Duration,
}

impl CpuReading {
    /// Reads the counters of all live threads.
    ///
    /// # Errors
    /// If the process is gone.
    pub fn now(pid: u32) -> anyhow::Result<Self> {
        let (mut on_cpu_ns, mut waited_ns) = (0, 0);
        for task in fs::read_dir(format!("/proc/{pid}/task")).context("the server is gone")? {
            let path = task.context("task directory")?.path().join("schedstat");
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let mut fields = text.split_ascii_whitespace().map(str::parse::<u64>);
            let (Some(Ok(ran)), Some(Ok(waited))) = (fields.next(), fields.next()) else {
                bail!("{}: {text:?} is not a schedstat", path.display());
            };
            on_cpu_ns += ran;
            waited_ns += waited;
        }
        let (user_ticks, system_ticks) = ticks(pid)?;
        Ok(Self {
            on_cpu_ns,
            waited_ns,
            user_ticks,
            system_ticks,
        })
    }

    /// Returns the time used from this reading to a later one.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a few thousand ticks")]
    pub fn until(self, later: Self) -> CpuTime {
        let user = later.user_ticks - self.user_ticks;
        let all = user + later.system_ticks - self.system_ticks;
        CpuTime {
            total: Duration::from_nanos(later.on_cpu_ns - self.on_cpu_ns),
            user_share: if all == 0 {
                0.0
            } else {
                user as f64 / all as f64
            },
            waited: Duration::from_nanos(later.waited_ns - self.waited_ns),
        }
    }
}

fn ticks(pid: u32) -> anyhow::Result<(u64, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).context("the server is gone")?;
    let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let mut fields = after_name.split(' ').skip(USER_TICKS_FIELD).map(str::parse);
    match (fields.next(), fields.next()) {
        (Some(Ok(user)), Some(Ok(system))) => Ok((user, system)),
        _ => bail!("/proc/{pid}/stat: no user and system time in {stat:?}"),
    }
}
