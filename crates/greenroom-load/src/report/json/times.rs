//! Times as JSON objects.

use std::time::Duration;

use serde::Serialize;

use crate::record::Times;

/// Percentiles of a histogram, in nanoseconds.
#[derive(Serialize)]
pub(super) struct Percentiles {
    count: u64,
    min: u64,
    mean: u64,
    standard_deviation: u64,
    p50: u64,
    p66: u64,
    p75: u64,
    p80: u64,
    p90: u64,
    p95: u64,
    p98: u64,
    p99: u64,
    #[serde(rename = "p99.9")]
    p99_9: u64,
    #[serde(rename = "p99.99")]
    p99_99: u64,
    max: u64,
}

/// The percentiles of a single point; `None` when no request of a latency ended.
#[derive(Serialize)]
pub(super) struct Brief {
    p50: Option<u64>,
    p90: Option<u64>,
    p99: Option<u64>,
    max: Option<u64>,
}

impl Percentiles {
    pub(super) fn of(times: &Times) -> Self {
        let quantile = |part| nanoseconds(times.quantile(part));
        Self {
            count: times.count(),
            min: nanoseconds(times.min()),
            mean: nanoseconds(times.mean()),
            standard_deviation: nanoseconds(times.standard_deviation()),
            p50: quantile(0.5),
            p66: quantile(0.66),
            p75: quantile(0.75),
            p80: quantile(0.8),
            p90: quantile(0.9),
            p95: quantile(0.95),
            p98: quantile(0.98),
            p99: quantile(0.99),
            p99_9: quantile(0.999),
            p99_99: quantile(0.9999),
            max: nanoseconds(times.max()),
        }
    }
}

impl Brief {
    pub(super) fn of(times: &Times) -> Self {
        let some = |time| (!times.is_empty()).then(|| nanoseconds(time));
        let quantile = |part| some(times.quantile(part));
        Self {
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            max: some(times.max()),
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    time.as_nanos().try_into().unwrap_or(u64::MAX)
}
