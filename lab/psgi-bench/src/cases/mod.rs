//! The cases, in the order of the table of goals.

mod blocking;
mod echo;
mod hello;
mod idle;
mod memory;

use bench_kit::{Binaries, Report};
use clap::ValueEnum;
use comfy_table::Table;

use crate::args::Args;
use crate::contestant::LineUp;
use crate::installed::Installed;
use crate::peer::Peer;

const MILLIS_PER_SECOND: f64 = 1_000.0;
const PERCENT: f64 = 100.0;

/// The resources of a case.
pub(crate) struct Context {
    pub(crate) binaries: Binaries,
    pub(crate) installed: Installed,
    rounds: usize,
    seconds: u32,
    peers_only: bool,
    ours_only: bool,
}

impl Context {
    pub(crate) fn new(args: &Args, binaries: Binaries, installed: Installed) -> Self {
        Self {
            binaries,
            installed,
            rounds: args.run.rounds(),
            seconds: args.run.seconds(),
            peers_only: args.peers_only,
            ours_only: args.ours_only,
        }
    }

    /// Returns `true` if a peer is to be in this run.
    pub(crate) fn wants(&self, peer: Peer) -> bool {
        match peer {
            Peer::Greenroom => !self.peers_only,
            _ => !self.ours_only,
        }
    }
}

/// One row of the table of goals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Case {
    /// 64 keep-alive connections, server on core 0, load on core 1
    Keepalive,
    /// The same, both on all cores
    KeepaliveFree,
    /// One request per connection, server on core 0, load on core 1
    Perconnection,
    /// The same, both on all cores
    PerconnectionFree,
    /// 200 requests that wait two seconds for a timer, at once
    Echo200,
    /// 2,000 of them
    Echo2000,
    /// 200 requests that block for two seconds, at once, and a sister application meanwhile
    Blocking,
    /// Two idle connections, and 500 requests beside them
    Idle,
    /// Eight workers of an application with Mojolicious, preloaded and not
    Memory,
}

impl Case {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Keepalive => "keepalive",
            Self::KeepaliveFree => "keepalive-free",
            Self::Perconnection => "perconnection",
            Self::PerconnectionFree => "perconnection-free",
            Self::Echo200 => "echo200",
            Self::Echo2000 => "echo2000",
            Self::Blocking => "blocking",
            Self::Idle => "idle",
            Self::Memory => "memory",
        }
    }

    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Report> {
        match self {
            Self::Keepalive => hello::KEEP_ALIVE.run(context),
            Self::KeepaliveFree => hello::KEEP_ALIVE_FREE.run(context),
            Self::Perconnection => hello::PER_CONNECTION.run(context),
            Self::PerconnectionFree => hello::PER_CONNECTION_FREE.run(context),
            Self::Echo200 => echo::TUTORIAL.run(context),
            Self::Echo2000 => echo::CROWD.run(context),
            Self::Blocking => blocking::run(context),
            Self::Idle => idle::run(context),
            Self::Memory => memory::run(context),
        }
    }
}

/// Adds rows for the peers that are not installed.
fn add_missing(out: &mut Table, line_up: &LineUp) {
    for name in &line_up.missing {
        out.add_row([name, "not installed"]);
    }
}
