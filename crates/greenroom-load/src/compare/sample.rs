//! The numbers of a run that are compared.

use std::time::Duration;

use serde::Serialize;

use crate::run::Measurement;
use crate::verdict::{Limit, ServerUsage, Verdict};

/// CPU time below which its division into user and system rests on less than 20 of the kernel's
/// ticks: 200 ms.
const DIVIDED_CPU_MIN: Duration = Duration::from_millis(200);

/// The numbers of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// Number of the round, from 1.
    pub round: u32,
    /// Requests that got a response, with any status.
    #[serde(rename = "answers")]
    pub responses: u64,
    /// Requests that got no response.
    pub failed: u64,
    /// Responses whose status is not 2xx.
    pub not_2xx: u64,
    /// Open loop: the share of the requests that were due and not sent, from 0 to 1.
    pub missed: f64,
    /// The side that was the limit.
    pub limit: Limit,
    /// Responses per second.
    pub requests_per_second: f64,
    /// The server's CPU time in us per response; `None` when it was not seen.
    pub cpu_us: Option<f64>,
    /// The server's CPU time in user mode, in us per response; `None` also when it used less than
    /// 200 ms in all, too little to divide.
    pub cpu_user_us: Option<f64>,
    /// The server's CPU time in the kernel, in us per response; `None` as that in user mode.
    pub cpu_system_us: Option<f64>,
    /// Latency at p50 in ms.
    pub p50_ms: f64,
    /// Latency at p99 in ms.
    pub p99_ms: f64,
    /// The longest latency in ms.
    pub max_ms: f64,
    /// The server's greatest resident memory in MiB.
    pub rss_mib: Option<f64>,
}

/// A number of a [`Sample`] that is compared with another server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// [`Sample::requests_per_second`]
    RequestsPerSecond,
    /// [`Sample::cpu_us`]
    Cpu,
    /// [`Sample::cpu_user_us`]
    CpuUser,
    /// [`Sample::cpu_system_us`]
    CpuSystem,
    /// [`Sample::p50_ms`]
    P50,
    /// [`Sample::p99_ms`]
    P99,
    /// [`Sample::max_ms`]
    Max,
    /// [`Sample::rss_mib`]
    Rss,
}

impl Metric {
    /// All metrics, in the order in which reports list them.
    pub const ALL: [Self; 8] = [
        Self::RequestsPerSecond,
        Self::Cpu,
        Self::CpuUser,
        Self::CpuSystem,
        Self::P50,
        Self::P99,
        Self::Max,
        Self::Rss,
    ];

    /// Returns its name in tables, with its unit.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RequestsPerSecond => "requests/s",
            Self::Cpu => "server CPU us/request",
            Self::CpuUser => "  user",
            Self::CpuSystem => "  system",
            Self::P50 => "p50 ms",
            Self::P99 => "p99 ms",
            Self::Max => "max ms",
            Self::Rss => "server RSS MiB",
        }
    }

    /// Returns its value in a run; `None` when the server was not seen.
    #[must_use]
    pub fn of(self, sample: &Sample) -> Option<f64> {
        match self {
            Self::RequestsPerSecond => Some(sample.requests_per_second),
            Self::Cpu => sample.cpu_us,
            Self::CpuUser => sample.cpu_user_us,
            Self::CpuSystem => sample.cpu_system_us,
            Self::P50 => Some(sample.p50_ms),
            Self::P99 => Some(sample.p99_ms),
            Self::Max => Some(sample.max_ms),
            Self::Rss => sample.rss_mib,
        }
    }
}

impl Sample {
    pub(super) fn of(round: u32, measurement: &Measurement) -> Self {
        let stream = &measurement.streams[0];
        let latency = stream.tally.latency();
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let server = measurement.server.filter(|server| server.processes > 0);
        let responses = stream.tally.responses();
        let divided = server.filter(|server| server.user + server.system >= DIVIDED_CPU_MIN);
        Self {
            round,
            responses,
            failed: stream.tally.failures.total(),
            not_2xx: stream.tally.not_2xx(),
            missed: stream.missed(),
            limit: Verdict::of(measurement).limit,
            requests_per_second: stream.requests_per_second(),
            cpu_us: server.map(|server| us(server.user + server.system, responses)),
            cpu_user_us: divided.map(|server| us(server.user, responses)),
            cpu_system_us: divided.map(|server| us(server.system, responses)),
            p50_ms: ms(latency.quantile(0.5)),
            p99_ms: ms(latency.quantile(0.99)),
            max_ms: ms(latency.max()),
            rss_mib: server.map(mebibytes),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count of requests")]
fn us(time: Duration, responses: u64) -> f64 {
    time.as_secs_f64() * 1e6 / responses.max(1) as f64
}

#[expect(clippy::cast_precision_loss, reason = "bytes of memory")]
fn mebibytes(server: ServerUsage) -> f64 {
    server.rss_bytes_max as f64 / f64::from(1 << 20)
}
