//! The capacity of a server and its latency without load: the yardsticks of its overload.

use bench_kit::process::Server;
use bench_kit::tools::GreenroomReport;
use serde::Serialize;

use crate::cases::{Context, FIB, HELLO, HELLO_RATE};

/// Of the closed loop: twice as many as there are cores here.
const CONNECTIONS: u32 = 4;
/// Requests, one after the other, whose median is the service time.
const ALONE_REQUESTS: u64 = 50;

/// A server without overload.
#[derive(Clone, Copy, Debug, Serialize)]
pub(in crate::cases) struct Capacity {
    /// Responses to [`FIB`] per second in a closed loop over four connections.
    pub(in crate::cases) per_second: f64,
    /// Cores that the generator took meanwhile.
    pub(in crate::cases) generator_cores: f64,
    /// One [`FIB`] alone.
    pub(in crate::cases) alone_ms: f64,
    /// Of [`HELLO`] at 100/s alone.
    pub(in crate::cases) hello_p50_ms: f64,
    pub(in crate::cases) hello_p99_ms: f64,
}

impl Capacity {
    pub(in crate::cases) fn measure(context: &Context, server: &Server) -> anyhow::Result<Self> {
        let fib = server.url(FIB);
        let bench = context.bench()?;
        let closed = closed_loop(context, server, context.seconds)?;
        let alone = bench.clone().flags(["-k"]).connections(ALONE_REQUESTS, 1);
        let alone = alone.run_well(&fib)?;
        let unloaded = bench.open_loop(HELLO_RATE, context.seconds);
        let hello = unloaded.run_well(&server.url(HELLO))?.latency();
        Ok(Self {
            per_second: per_second(&closed),
            generator_cores: closed.cpu.total().as_secs_f64() / closed.elapsed_seconds,
            alone_ms: alone.latency().p50_ms,
            hello_p50_ms: hello.p50_ms,
            hello_p99_ms: hello.p99_ms,
        })
    }

    /// Its part that is left where the generator takes so many cores of all.
    pub(in crate::cases) fn left_beside(&self, generator_cores: f64, cores: f64) -> f64 {
        self.per_second * (cores - generator_cores) / (cores - self.generator_cores)
    }
}

/// Responses to [`FIB`] per second in one second, for what needs no more than a rough number.
pub(in crate::cases) fn roughly_per_second(
    context: &Context,
    server: &Server,
) -> anyhow::Result<f64> {
    closed_loop(context, server, 1).map(|report| per_second(&report))
}

fn closed_loop(
    context: &Context,
    server: &Server,
    seconds: u32,
) -> anyhow::Result<GreenroomReport> {
    let bench = context.bench()?.keep_alive(CONNECTIONS, seconds);
    bench.run_well(&server.url(FIB))
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn per_second(report: &GreenroomReport) -> f64 {
    report.good() as f64 / report.elapsed_seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_generator_takes_is_no_capacity() {
        let capacity = Capacity {
            per_second: 200.0,
            generator_cores: 0.0,
            alone_ms: 10.0,
            hello_p50_ms: 0.1,
            hello_p99_ms: 0.2,
        };
        let left = capacity.left_beside(0.5, 2.0);
        assert!((left - 150.0).abs() < 1e-9, "{left}");
    }
}
