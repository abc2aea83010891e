//! The cost of a small request: CPU time of all processes of a server, and requests per second.

mod result;

use anyhow::ensure;
use bench_kit::Report;
use bench_kit::measure::{FamilyReading, FamilyTime};
use bench_kit::rounds::interleave;
use bench_kit::tools::{GreenroomBench, GreenroomReport};
use serde::Serialize;

use super::Context;
use crate::contestant::{Contestant, LineUp, Placement};
use crate::peer::Peer;

const APPLICATION: &str = "hello.psgi";
const PATH: &str = "/";
const CONCURRENCY: &str = "64";
const WARM_UP_SECONDS: u32 = 1;

const PEERS: [Peer; 6] = [
    Peer::Greenroom,
    Peer::Twiggy,
    Peer::Feersum,
    Peer::FeersumKeepAlive,
    Peer::Starman,
    Peer::Starlet,
];

pub(super) const KEEP_ALIVE: Spec = Spec {
    case: "keepalive",
    title: "64 keep-alive connections, one worker; server on core 0, load on core 1",
    placement: Placement::Apart,
    load: Load::KeepAlive,
    goals: &[
        Goal::rate(4.0, Peer::Twiggy),
        Goal::rate(0.9, Peer::FeersumKeepAlive),
        Goal::cpu(0.28, Peer::Twiggy),
        Goal::cpu(1.3, Peer::FeersumKeepAlive),
    ],
};

pub(super) const KEEP_ALIVE_FREE: Spec = Spec {
    case: "keepalive-free",
    title: "64 keep-alive connections, one worker; server and load on all cores",
    placement: Placement::Free,
    load: Load::KeepAlive,
    goals: &[
        Goal::rate(4.0, Peer::Twiggy),
        Goal::rate(0.9, Peer::FeersumKeepAlive),
    ],
};

pub(super) const PER_CONNECTION: Spec = Spec {
    case: "perconnection",
    title: "one request per connection, 64 at once, one worker; server on core 0, load on core 1",
    placement: Placement::Apart,
    load: Load::Connections,
    goals: &[Goal::rate(1.3, Peer::Feersum)],
};

pub(super) const PER_CONNECTION_FREE: Spec = Spec {
    case: "perconnection-free",
    title: "one request per connection, 64 at once, one worker; server and load on all cores",
    placement: Placement::Free,
    load: Load::Connections,
    goals: &[Goal::rate(1.3, Peer::Feersum)],
};

/// One row of the table of goals.
pub(super) struct Spec {
    case: &'static str,
    title: &'static str,
    placement: Placement,
    load: Load,
    goals: &'static [Goal],
}

/// The way in which requests arrive.
#[derive(Clone, Copy)]
enum Load {
    Connections,
    KeepAlive,
}

/// A goal of Greenroom, as a multiple of a peer.
#[derive(Clone, Copy)]
struct Goal {
    metric: Metric,
    multiple: f64,
    versus: Peer,
}

#[derive(Clone, Copy)]
enum Metric {
    /// Requests per second, at least.
    Rate,
    /// CPU time per request, at most.
    Cpu,
}

/// One measurement of one server.
#[derive(Clone, Copy, Debug, Serialize)]
struct Sample {
    answered: u64,
    failed: u64,
    per_second: f64,
    /// The CPU time per request, of all processes.
    cpu_us: f64,
    /// The CPU time per request of the first process alone.
    first_us: f64,
    /// The time without a core as a share of time on it.
    waited: f64,
    p99_ms: f64,
    longest_ms: f64,
}

impl Spec {
    pub(super) fn run(&self, context: &Context) -> anyhow::Result<Report> {
        let contestant = |peer| Contestant::new(peer, APPLICATION).placed(self.placement);
        let line_up = LineUp::of(PEERS.map(contestant), context);
        let rows = interleave(self.case, context.rounds, &line_up.present, |contestant| {
            self.measure(contestant, context)
        })?;
        Ok(result::tell(self, &rows, &line_up, context.rounds))
    }

    fn measure(&self, contestant: &Contestant, context: &Context) -> anyhow::Result<Sample> {
        let server = contestant.start(context)?;
        let url = server.url(PATH);
        let bench = contestant.bench(context)?;
        self.load.of(&bench, WARM_UP_SECONDS).run(&url)?;
        let before = FamilyReading::now(server.pid())?;
        let report = self.load.of(&bench, context.seconds).run(&url)?;
        let used = before.until(&FamilyReading::now(server.pid())?)?;
        Sample::of(&report, used)
    }
}

impl Goal {
    const fn rate(multiple: f64, versus: Peer) -> Self {
        let metric = Metric::Rate;
        Self {
            metric,
            multiple,
            versus,
        }
    }

    const fn cpu(multiple: f64, versus: Peer) -> Self {
        let metric = Metric::Cpu;
        Self {
            metric,
            multiple,
            versus,
        }
    }
}

impl Metric {
    fn of(self, sample: &Sample) -> f64 {
        match self {
            Self::Rate => sample.per_second,
            Self::Cpu => sample.cpu_us,
        }
    }
}

impl Load {
    fn of(self, bench: &GreenroomBench, seconds: u32) -> GreenroomBench {
        let bench = bench.clone();
        let bench = bench.flags(["-c", CONCURRENCY, "-t", &seconds.to_string()]);
        match self {
            Self::Connections => bench,
            Self::KeepAlive => bench.flags(["-k"]),
        }
    }
}

impl Sample {
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    fn of(report: &GreenroomReport, used: FamilyTime) -> anyhow::Result<Self> {
        let answered = report.good();
        ensure!(answered > 0, "no request got a response");
        let each_us = 1e6 / answered as f64;
        let total = used.total().as_secs_f64();
        Ok(Self {
            answered,
            failed: report.requests().sent - answered,
            per_second: answered as f64 / report.elapsed_seconds,
            cpu_us: total * each_us,
            first_us: used.first.as_secs_f64() * each_us,
            waited: used.waited.as_secs_f64() / total,
            p99_ms: report.latency().p99_ms,
            longest_ms: report.latency().max_ms,
        })
    }
}
