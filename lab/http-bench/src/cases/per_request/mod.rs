//! CPU time per request: start a server, warm it up, load it, read its clocks before and after.

mod result;
mod specs;

use anyhow::ensure;
use bench_kit::Report;
use bench_kit::measure::{CpuReading, CpuTime};
use bench_kit::tools::Ab;
use serde::Serialize;

pub(crate) use specs::{keepalive, perconnection, pipelined, router};

use self::result::tell;
use super::Context;
use super::contestant::{Contestant, present};

const WARM_UP_SECONDS: u32 = 1;
const WARM_UP_CONNECTIONS: u64 = 5_000;
const AB_REQUESTS_PER_SECOND: u64 = 20_000;
const CONCURRENCY: u32 = 64;

/// One row of the table of goals that is about CPU time.
pub(crate) struct Spec {
    case: &'static str,
    title: &'static str,
    contestants: Vec<Contestant>,
    /// The server whose CPU time is 1.
    peer: &'static str,
    load: Load,
    goals: Vec<Goal>,
}

/// The way in which requests arrive.
#[derive(Clone, Copy)]
enum Load {
    Connections,
    KeepAlive,
    Pipelined(u32),
}

/// `metric` of `subject` must not exceed `at_most` times that of `versus`.
struct Goal {
    subject: &'static str,
    metric: Metric,
    versus: &'static str,
    at_most: f64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Metric {
    Total,
    User,
}

/// One measurement of one server, in microseconds of CPU time per request.
#[derive(Clone, Copy, Debug, Serialize)]
struct Sample {
    requests: u64,
    total_us: f64,
    user_us: f64,
    system_us: f64,
    /// Time without the core as a share of time on it.
    waited: f64,
}

impl Spec {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Report> {
        let contestants = present(self.with_control(), context);
        let measure = |contestant: &Contestant| measure(contestant, self.load, context);
        let rows = context.interleave(self.case, &contestants, measure)?;
        Ok(tell(&self, &rows, context))
    }

    fn with_control(&self) -> Vec<Contestant> {
        let control = self
            .contestants
            .iter()
            .filter(|contestant| contestant.name == self.peer)
            .map(Contestant::again);
        self.contestants.iter().cloned().chain(control).collect()
    }
}

impl Metric {
    fn of(self, sample: &Sample) -> f64 {
        match self {
            Self::Total => sample.total_us,
            Self::User => sample.user_us,
        }
    }
}

fn measure(contestant: &Contestant, load: Load, context: &Context) -> anyhow::Result<Sample> {
    let server = contestant.launch(context)?.start()?;
    let url = server.url(contestant.path);
    load.warm_up(&url, context)?;
    let before = CpuReading::now(server.pid())?;
    let requests = load.run(&url, context.seconds, context)?;
    let used = before.until(CpuReading::now(server.pid())?);
    ensure!(requests > 0, "no request got a response");
    Ok(Sample::new(requests, used))
}

impl Load {
    fn warm_up(self, url: &str, context: &Context) -> anyhow::Result<()> {
        match self {
            Self::Connections => Ab::new(WARM_UP_CONNECTIONS, CONCURRENCY).run(url).map(drop),
            Self::KeepAlive | Self::Pipelined(_) => {
                self.run(url, WARM_UP_SECONDS, context).map(drop)
            }
        }
    }

    /// Makes the load; returns the number of requests that got their responses.
    fn run(self, url: &str, seconds: u32, context: &Context) -> anyhow::Result<u64> {
        match self {
            Self::Connections => {
                let requests = AB_REQUESTS_PER_SECOND * u64::from(seconds);
                Ok(Ab::new(requests, CONCURRENCY).run(url)?.requests)
            }
            Self::KeepAlive => {
                let bench = context.bench()?.keep_alive(CONCURRENCY, seconds);
                Ok(bench.run_well(url)?.good())
            }
            Self::Pipelined(depth) => {
                let bench = context.bench()?.keep_alive(CONCURRENCY, seconds);
                let bench = bench.flags(["--pipeline", &depth.to_string()]);
                Ok(bench.run_well(url)?.good())
            }
        }
    }
}

impl Sample {
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    fn new(requests: u64, used: CpuTime) -> Self {
        let total_us = used.total.as_secs_f64() * 1e6 / requests as f64;
        let user_us = total_us * used.user_share;
        let waited = used.waited.as_secs_f64() / used.total.as_secs_f64();
        Self {
            requests,
            total_us,
            user_us,
            system_us: total_us - user_us,
            waited,
        }
    }
}
