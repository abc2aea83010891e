//! The clocks of a measurement.

use std::process;
use std::time::{Duration, Instant};

use bench_kit::measure::CpuReading;

use crate::outcome::Sample;

/// Wall clock and the kernel's accounts of this process.
pub(crate) struct Stopwatch {
    cpu: CpuReading,
    start: Instant,
}

impl Stopwatch {
    pub(crate) fn start() -> anyhow::Result<Self> {
        Ok(Self {
            cpu: CpuReading::now(process::id())?,
            start: Instant::now(),
        })
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Divides all time by the operations, at least 1.
    pub(crate) fn stop(&self, operations: u64) -> anyhow::Result<Sample> {
        let wall = self.elapsed();
        let cpu = self.cpu.until(CpuReading::now(process::id())?);
        Ok(Sample {
            operations,
            operations_with_warm_up: operations,
            nanoseconds: per_operation(wall, operations),
            cpu_nanoseconds: Some(per_operation(cpu.total, operations)),
            waited: Some(cpu.waited.as_secs_f64() / cpu.total.as_secs_f64()),
            allocations: None,
            bytes: None,
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "billions at most")]
pub(crate) fn per_operation(time: Duration, operations: u64) -> f64 {
    time.as_nanos() as f64 / operations as f64
}
