//! The cases, in the order of the table of goals.

mod after;
mod block;
mod bodies;
mod bursts;
mod calibrate;
mod cost;
mod fairness;
mod hand_off;
mod hello;
mod loops;
mod niceness;
mod overload;
mod pages;
mod shapes;
mod turning;

use std::thread::available_parallelism;

use anyhow::Context as _;
use bench_kit::process::Server;
use bench_kit::rounds::Row;
use bench_kit::tools::{GreenroomBench, Priority};
use bench_kit::{Binaries, Report, RunOptions, Verdict};
use clap::ValueEnum;

use crate::args::Args;

/// The route that must respond at once under any load.
const HELLO: &str = "/hello";
/// The route that computes: some milliseconds of additions.
const FIB: &str = "/fib/50000";
/// Requests per second to [`HELLO`] beside the heavy ones.
const HELLO_RATE: u32 = 100;
/// Seconds after which a client has gone.
const TIMEOUT_SECONDS: &str = "2";

const WARM_UP_REQUESTS: u64 = 200;
const WARM_UP_CONNECTIONS: u32 = 4;

const MICROS_PER_MILLI: f64 = 1_000.0;
const PERCENT: f64 = 100.0;

/// The settings and programs that all cases share.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) binaries: Binaries,
    pub(crate) ours_only: bool,
    /// For a case that has defaults of its own.
    options: RunOptions,
    rounds: usize,
    seconds: u32,
    quick: bool,
    /// Of the machine.
    cores: f64,
    priority: Priority,
}

impl Context {
    pub(crate) fn new(args: &Args, binaries: Binaries) -> anyhow::Result<Self> {
        let cores = available_parallelism().context("number of cores")?.get();
        Ok(Self {
            binaries,
            ours_only: args.ours_only,
            options: args.run.clone(),
            rounds: args.run.rounds(),
            seconds: args.run.seconds(),
            quick: args.run.quick,
            cores: f64::from(u32::try_from(cores)?),
            priority: Priority::highest(),
        })
    }

    /// With a generator that stands in line with the server.
    fn at_usual_priority(&self) -> Self {
        Self {
            priority: Priority::Usual,
            ..self.clone()
        }
    }

    /// The generator, on the cores that the server has too, and before it where that may be.
    fn bench(&self) -> anyhow::Result<GreenroomBench> {
        let bench = GreenroomBench::new(&self.binaries)?;
        Ok(bench.on_all_cores().priority(self.priority))
    }

    /// As [`bench`](Self::bench), over connections that are kept, with the clients' time-out, and
    /// [`HELLO`] asked for all the while.
    fn bench_beside_hello(&self, server: &Server) -> anyhow::Result<GreenroomBench> {
        let url = server.url(HELLO);
        let hello = format!("rate={HELLO_RATE} name=hello keep-alive=yes {url}");
        let bench = self.bench()?;
        Ok(bench.flags(["-k", "-s", TIMEOUT_SECONDS, "--also", &hello]))
    }

    /// Enough of [`HELLO`] for it to be proven short, where that is asked.
    fn warm_up(&self, server: &Server) -> anyhow::Result<()> {
        let bench = self.bench()?.flags(["-k"]);
        let hello = bench
            .clone()
            .connections(WARM_UP_REQUESTS, WARM_UP_CONNECTIONS);
        hello.run_well(&server.url(HELLO))?;
        Ok(())
    }

    /// Returns the note on the load that every case has.
    fn note(&self) -> String {
        match self.priority {
            Priority::Raised => {
                "load by greenroom bench at niceness -10, on the cores that the server \
                    has"
                .to_owned()
            }
            Priority::Usual => {
                "load by greenroom bench at the usual priority, for only root may raise it: it \
                    waits for its turn as the server does, and tells latencies that are too \
                    long"
                    .to_owned()
            }
        }
    }
}

/// One row of the table of goals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Case {
    /// /hello at 100/s while fib(50000) is offered at 0.7, 2, 6, 10 x capacity
    Overload,
    /// The time to recover after a flood
    After,
    /// 500 and 200 requests that block for two seconds, at once
    Block,
    /// A route that turns long after 10,000 short runs
    Turning,
    /// /hello alone at twice what its loop can do
    Loops,
    /// A handler of 60 us alone at twice what its loop can do
    LoopsBusy,
    /// User CPU that automatic placement costs a short route
    Cost,
    /// The time that a hand-off to a stage and back adds on an idle server
    Handoff,
    /// Overload with stage threads at niceness 0, 10, 19
    Niceness,
    /// A polite client beside 200 that try again 10 ms after each rejection
    Fairness,
    /// Pages at 50/s beside 40 log-ins of 28 ms at once
    Pages,
    /// /hello beside floods, round after round against one server, the generator at the usual
    /// priority
    Hello,
    /// 15,000 and 5,000 requests at once; ab on a busy machine; 30 computations at once
    Bursts,
    /// Four sleepers beside /hello, in every shape in which axum takes an application
    Shapes,
    /// Large bodies that are compressed while they are sent, beside /hello
    Bodies,
}

impl Case {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Overload => "overload",
            Self::After => "after",
            Self::Block => "block",
            Self::Turning => "turning",
            Self::Loops => "loops",
            Self::LoopsBusy => "loops-busy",
            Self::Cost => "cost",
            Self::Handoff => "handoff",
            Self::Niceness => "niceness",
            Self::Fairness => "fairness",
            Self::Pages => "pages",
            Self::Hello => "hello",
            Self::Bursts => "bursts",
            Self::Shapes => "shapes",
            Self::Bodies => "bodies",
        }
    }

    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Report> {
        match self {
            Self::Overload => overload::run(context),
            Self::After => after::run(context),
            Self::Block => block::run(context),
            Self::Turning => turning::run(context),
            Self::Loops => loops::run(&loops::SMALLEST, context),
            Self::LoopsBusy => loops::run(&loops::COMPUTED, context),
            Self::Cost => cost::run(context),
            Self::Handoff => hand_off::run(context),
            Self::Niceness => niceness::run(context),
            Self::Fairness => fairness::run(context),
            Self::Pages => pages::run(context),
            Self::Hello => hello::run(context),
            Self::Bursts => bursts::run(context),
            Self::Shapes => shapes::run(context),
            Self::Bodies => bodies::run(context),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn percent(part: u64, of: u64) -> f64 {
    part as f64 / of.max(1) as f64 * PERCENT
}

/// Judges `/hello` beside a case: every request gets a response, within 5 ms, in the worst round.
fn hello_verdicts<S>(
    row: &Row<S>,
    answered_percent: fn(&S) -> f64,
    p99_ms: fn(&S) -> f64,
) -> Vec<Verdict> {
    vec![
        Verdict::at_least(
            format!("{}: /hello answered", row.name),
            row.spread(answered_percent).map(|spread| spread.min),
            100.0,
            " %",
        ),
        Verdict::at_most(
            format!("{}: /hello p99", row.name),
            row.spread(p99_ms).map(|spread| spread.max),
            5.0,
            " ms",
        ),
    ]
}
