//! The cases, in the order of the table of goals.

mod contestant;
mod cost;
pub(crate) mod drain;
mod echo_burst;
mod echo_crowd;
mod entry;
mod fronts;
mod idle;
mod per_request;
mod pixel;
mod proxy;
mod tls;

use bench_kit::rounds::{Row, interleave};
use bench_kit::tools::GreenroomBench;
use bench_kit::{Binaries, Report};
use clap::ValueEnum;

use self::contestant::Contestant;
use crate::args::Args;

/// The settings and programs that all cases share.
pub(crate) struct Context {
    pub(crate) binaries: Binaries,
    pub(crate) rounds: usize,
    pub(crate) seconds: u32,
    pub(crate) peers_only: bool,
}

impl Context {
    pub(crate) fn new(args: &Args, binaries: Binaries) -> Self {
        Self {
            binaries,
            rounds: args.run.rounds(),
            seconds: args.run.seconds(),
            peers_only: args.peers_only,
        }
    }

    /// Runs `measure` for each contestant in each round, in alternating order; the samples of each
    /// contestant.
    pub(crate) fn interleave<T>(
        &self,
        case: &str,
        contestants: &[Contestant],
        measure: impl FnMut(&Contestant) -> anyhow::Result<T>,
    ) -> anyhow::Result<Vec<Row<T>>> {
        interleave(case, self.rounds, contestants, measure)
    }

    /// The generator of most loads.
    pub(crate) fn bench(&self) -> anyhow::Result<GreenroomBench> {
        GreenroomBench::new(&self.binaries)
    }
}

/// One row of the table of goals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Case {
    /// 64 keep-alive connections, plain service
    Keepalive,
    /// The same through an axum `Router`
    Router,
    /// 16 requests in one write
    Pipelined,
    /// One request per connection
    Perconnection,
    /// 10,000 idle keep-alive connections
    Idle,
    /// 15,000 requests that wait two seconds, at once
    Echo15k,
    /// 200 requests that wait two seconds, at once
    Echo200,
    /// 5,000 proxied requests per second
    Proxy,
    /// The ad blocker's pixel, as its author measured it
    Pixel,
    /// 1,500 clients post to a server that is stopped
    Drain,
    /// A full handshake of TLS and one request
    TlsFull,
    /// A resumed handshake and one request
    TlsResumed,
    /// 64 keep-alive connections over TLS, and without
    TlsKeepalive,
    /// HTTP/2 over TLS, 16 streams on each of 8 connections
    TlsH2,
    /// 10,000 idle TLS connections
    TlsIdle,
    /// Requests on open connections beside a flood of handshakes
    TlsFlood,
    /// Files of 1 kB, 100 kB and 1 GB
    Files,
    /// Requests passed on to another server
    Forward,
}

impl Case {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Keepalive => "keepalive",
            Self::Router => "router",
            Self::Pipelined => "pipelined",
            Self::Perconnection => "perconnection",
            Self::Idle => "idle",
            Self::Echo15k => "echo15k",
            Self::Echo200 => "echo200",
            Self::Proxy => "proxy",
            Self::Pixel => "pixel",
            Self::Drain => "drain",
            Self::TlsFull => "tls-full",
            Self::TlsResumed => "tls-resumed",
            Self::TlsKeepalive => "tls-keepalive",
            Self::TlsH2 => "tls-h2",
            Self::TlsIdle => "tls-idle",
            Self::TlsFlood => "tls-flood",
            Self::Files => "files",
            Self::Forward => "forward",
        }
    }

    /// Returns the cases of a server at the edge, or all others.
    pub(crate) fn all(edge: bool) -> Vec<Self> {
        let cases = Self::value_variants().iter().copied();
        cases.filter(|case| case.is_of_edge() == edge).collect()
    }

    fn is_of_edge(self) -> bool {
        matches!(
            self,
            Self::TlsFull
                | Self::TlsResumed
                | Self::TlsKeepalive
                | Self::TlsH2
                | Self::TlsIdle
                | Self::TlsFlood
                | Self::Files
                | Self::Forward
        )
    }

    /// Returns true if `greenroom bench` makes load in it, or serves.
    pub(crate) fn needs_greenroom(self) -> bool {
        !matches!(
            self,
            Self::Drain | Self::TlsFull | Self::TlsH2 | Self::TlsIdle | Self::TlsResumed
        )
    }

    /// Programs from the distribution that the case starts.
    pub(crate) fn tools(self) -> &'static [&'static str] {
        match self {
            Self::Perconnection | Self::Echo200 | Self::Pixel => &["taskset", "ab"],
            Self::TlsH2 => &["taskset", "h2load"],
            Self::Drain
            | Self::Echo15k
            | Self::Files
            | Self::Forward
            | Self::Idle
            | Self::Keepalive
            | Self::Pipelined
            | Self::Proxy
            | Self::Router
            | Self::TlsFlood
            | Self::TlsFull
            | Self::TlsIdle
            | Self::TlsKeepalive
            | Self::TlsResumed => &["taskset"],
        }
    }

    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Report> {
        match self {
            Self::Keepalive => per_request::keepalive().run(context),
            Self::Router => per_request::router().run(context),
            Self::Pipelined => per_request::pipelined().run(context),
            Self::Perconnection => per_request::perconnection().run(context),
            Self::Idle => idle::run(context),
            Self::Echo15k => echo_crowd::run(context),
            Self::Echo200 => echo_burst::run(context),
            Self::Proxy => proxy::run(context),
            Self::Pixel => pixel::run(context),
            Self::Drain => drain::run(context),
            Self::TlsFull => tls::full(context),
            Self::TlsResumed => tls::resumed(context),
            Self::TlsKeepalive => tls::keepalive(context),
            Self::TlsH2 => tls::h2(context),
            Self::TlsIdle => tls::idle(context),
            Self::TlsFlood => tls::flood(context),
            Self::Files => fronts::files(context),
            Self::Forward => fronts::forward(context),
        }
    }
}
