//! The cases, in the order of the table of goals.

mod cost;
mod floor;
mod generator;
mod memory;
mod open;
mod stall;

use bench_kit::process::{Launch, Server};
use bench_kit::tools::GreenroomBench;
use bench_kit::{Binaries, Report};
use clap::ValueEnum;

use crate::args::Args;

/// The path of the requests in most cases.
const PATH: &str = "/hello";

const WARM_UP_REQUESTS: u64 = 5_000;
const WARM_UP_CONNECTIONS: u32 = 64;

/// The context of a case: programs and settings.
pub(crate) struct Context {
    binaries: Binaries,
    rounds: usize,
    seconds: u32,
    minutes: u32,
    quick: bool,
}

impl Context {
    pub(crate) fn new(args: &Args, binaries: Binaries) -> Self {
        Self {
            binaries,
            rounds: args.run.rounds(),
            seconds: args.run.seconds(),
            minutes: args.minutes(),
            quick: args.run.quick,
        }
    }

    fn greenroom(&self) -> anyhow::Result<GreenroomBench> {
        GreenroomBench::new(&self.binaries)
    }

    /// Starts the cheapest server that there is, so that the generator is what is measured.
    fn start_raw_server(&self) -> anyhow::Result<Server> {
        let program = self.binaries.path("raw-epoll")?;
        // ab keeps a connection only where the response itself says so.
        let server = Launch::new(program)
            .arguments(["--say-keep-alive"])
            .start()?;
        let warm_up = self
            .greenroom()?
            .connections(WARM_UP_REQUESTS, WARM_UP_CONNECTIONS);
        warm_up.run_well(&server.url(PATH))?;
        Ok(server)
    }
}

/// One row of the table of goals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Case {
    /// Closed loop, 64 keep-alive connections: CPU time of the generator
    Closed,
    /// One request per connection: CPU time of the generator
    Perconnection,
    /// Open loop at 10,000 requests per second: CPU time and rate
    Open,
    /// A server that stands still for a second in five: the latencies that are reported
    Stall,
    /// The median at 1,000 requests per second beside a client that never sleeps
    Floor,
    /// Resident memory of a long closed loop
    Memory,
}

impl Case {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Perconnection => "perconnection",
            Self::Open => "open",
            Self::Stall => "stall",
            Self::Floor => "floor",
            Self::Memory => "memory",
        }
    }

    /// Returns the programs from the distribution that the case starts.
    pub(crate) fn tools(self) -> &'static [&'static str] {
        match self {
            Self::Closed | Self::Stall => &["taskset", "ab", "wrk"],
            Self::Perconnection => &["taskset", "ab"],
            Self::Floor | Self::Memory | Self::Open => &["taskset"],
        }
    }

    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Report> {
        match self {
            Self::Closed => cost::closed(context),
            Self::Perconnection => cost::perconnection(context),
            Self::Open => open::run(context),
            Self::Stall => stall::run(context),
            Self::Floor => floor::run(context),
            Self::Memory => memory::run(context),
        }
    }
}
