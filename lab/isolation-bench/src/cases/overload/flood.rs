//! A flood of heavy requests beside a trickle of light ones.

use bench_kit::process::Server;
use bench_kit::tools::GreenroomReport;
use serde::Serialize;

use super::capacity::Capacity;
use super::probe::{self, Probes};
use crate::cases::{Context, FIB, percent};
use crate::status;

/// Seconds of a flood before what is done in time is counted: the queue fills in them.
const FILLING_SECONDS: u32 = 1;

const RESETS: [&str; 4] = ["closed-early", "malformed", "refused", "reset"];
const TIMEOUTS: [&str; 3] = ["connect-timeout", "never-sent", "timeout"];

/// The outcomes of the flood and of `/hello` beside it.
#[derive(Clone, Copy, Debug, Serialize)]
pub(in crate::cases) struct Flood {
    pub(in crate::cases) offered_per_second: f64,
    /// Of [`HELLO`](crate::cases::HELLO), with 200.
    pub(in crate::cases) hello_answered_percent: f64,
    pub(in crate::cases) hello_p50_ms: f64,
    pub(in crate::cases) hello_p99_ms: f64,
    /// Responses in time, as a share of what was offered or can be done.
    pub(in crate::cases) goodput: f64,
    /// The same, of what can be done beside the generator.
    pub(in crate::cases) goodput_corrected: f64,
    pub(in crate::cases) generator_cores: f64,
    pub(in crate::cases) accepted_p99_ms: f64,
    pub(in crate::cases) refused: u64,
    pub(in crate::cases) refused_percent: f64,
    pub(in crate::cases) refused_p99_ms: f64,
    /// Of these, let in and dropped when their turn came too late; `None` where the server has no
    /// stages.
    pub(super) late: Option<u64>,
    pub(in crate::cases) resets: u64,
    pub(in crate::cases) timeouts: u64,
    pub(super) probes: Probes,
}

impl Flood {
    /// Offers `factor` times what the server can do.
    pub(in crate::cases) fn measure(
        context: &Context,
        server: &Server,
        capacity: &Capacity,
        factor: f64,
    ) -> anyhow::Result<Self> {
        let offered = capacity.per_second * factor;
        let bench = context.bench_beside_hello(server)?;
        let seconds = (context.seconds + FILLING_SECONDS).to_string();
        let bench = bench.flags(["--rate", &format!("{offered:.1}"), "-t", &seconds]);
        let flood = || bench.run_against_all_odds(&server.url(FIB));
        let (report, probes) = if factor > 1.0 {
            probe::beside(server.address(), flood)
        } else {
            (flood(), Probes::default())
        };
        let flood = Self::of(&report?, capacity, offered, probes, context);
        Ok(Self {
            late: status::dropped_late(server.address()),
            ..flood
        })
    }

    fn of(
        report: &GreenroomReport,
        capacity: &Capacity,
        offered: f64,
        probes: Probes,
        context: &Context,
    ) -> Self {
        let (fib, hello) = (&report.streams()[0], &report.streams()[1]);
        let generator_cores = report.cpu.total().as_secs_f64() / report.elapsed_seconds;
        // What is worked off behind the flood's end is not counted.
        let good = fib.good_per_second(FILLING_SECONDS, FILLING_SECONDS + context.seconds);
        let left = capacity.left_beside(generator_cores, context.cores);
        Self {
            offered_per_second: offered,
            hello_answered_percent: percent(hello.with_status(200), hello.requests().due),
            hello_p50_ms: hello.latency().p50_ms,
            hello_p99_ms: hello.latency().p99_ms,
            goodput: good / offered.min(capacity.per_second),
            goodput_corrected: good / offered.min(left),
            generator_cores,
            accepted_p99_ms: fib.good_latency().p99_ms,
            refused: fib.with_status(503),
            refused_percent: percent(fib.with_status(503), fib.requests().due),
            refused_p99_ms: fib.bad_latency().p99_ms,
            late: None,
            resets: fib.failed(&RESETS),
            timeouts: fib.failed(&TIMEOUTS),
            probes,
        }
    }
}
