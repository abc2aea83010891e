//! CPU time of a server, of all its processes.

use anyhow::ensure;
use bench_kit::cell;
use bench_kit::measure::FamilyReading;
use bench_kit::rounds::Row;
use serde::Serialize;

const PERCENT: f64 = 100.0;

/// One measurement of one server.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Cost {
    /// Requests or connections that got their responses.
    count: u64,
    /// CPU time of each, in microseconds.
    pub(crate) total_us: f64,
    /// Time without the core as a share of time on it.
    waited: f64,
}

impl Cost {
    /// Measures the server of process `pid` while `load` runs, which returns the number of requests
    /// or connections that got their responses.
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    pub(crate) fn of(pid: u32, load: impl FnOnce() -> anyhow::Result<u64>) -> anyhow::Result<Self> {
        let before = FamilyReading::now(pid)?;
        let count = load()?;
        let used = before.until(&FamilyReading::now(pid)?)?;
        ensure!(count > 0, "no request got a response");
        Ok(Self {
            count,
            total_us: used.total().as_secs_f64() * 1e6 / count as f64,
            waited: used.waited.as_secs_f64() / used.total().as_secs_f64(),
        })
    }

    /// The cell of a table about [`Cost::waited`], in per cent.
    pub(crate) fn waited<T>(row: &Row<T>, of: impl Fn(&T) -> &Self) -> String {
        cell(row.spread(|sample| of(sample).waited * PERCENT), 0)
    }
}
