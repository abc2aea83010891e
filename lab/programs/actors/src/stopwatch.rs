//! The clocks of a measurement.

use std::time::{Duration, Instant};

use procfs::process::Process;

use crate::outcome::Sample;

/// Wall clock and the kernel's accounts of this process.
pub(crate) struct Stopwatch {
    before: Cpu,
    start: Instant,
}

impl Stopwatch {
    pub(crate) fn start() -> anyhow::Result<Self> {
        Ok(Self {
            before: Cpu::now()?,
            start: Instant::now(),
        })
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Divides all time by the operations, at least 1.
    pub(crate) fn stop(&self, operations: u64) -> anyhow::Result<Sample> {
        let wall = self.elapsed();
        let now = Cpu::now()?;
        let ran = now.ran.saturating_sub(self.before.ran);
        let waited = now.waited.saturating_sub(self.before.waited);
        Ok(Sample {
            operations,
            operations_with_warm_up: operations,
            nanoseconds: per_operation(wall, operations),
            cpu_nanoseconds: Some(per_operation(ran, operations)),
            waited: Some(waited.as_secs_f64() / ran.as_secs_f64()),
            allocations: None,
            bytes: None,
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "billions at most")]
pub(crate) fn per_operation(time: Duration, operations: u64) -> f64 {
    time.as_nanos() as f64 / operations as f64
}

/// The scheduler's account of all threads of this process.
#[derive(Clone, Copy, Default)]
struct Cpu {
    ran: Duration,
    waited: Duration,
}

impl Cpu {
    fn now() -> anyhow::Result<Self> {
        let mut all = Self::default();
        for task in Process::myself()?.tasks()?.flatten() {
            let account = task.schedstat()?;
            all.ran += Duration::from_nanos(account.sum_exec_runtime);
            all.waited += Duration::from_nanos(account.run_delay);
        }
        Ok(all)
    }
}
