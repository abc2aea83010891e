//! The driver's flags.

use std::io::{self, Write as _};

use actor_bench_cases::Case;
use bench_kit::{RunOptions, named_or_all};
use clap::{Parser, ValueEnum};

use crate::peer::Peer;

/// The cost of a message and of an actor: Greenroom beside other actor libraries.
#[derive(Debug, Parser)]
#[command(mut_arg("seconds", |seconds| seconds.default_value("1")))]
pub(crate) struct Args {
    /// Only these cases, separated by commas
    #[arg(long, value_enum, value_name = "CASES", value_delimiter = ',')]
    cases: Vec<Case>,
    /// Only these programs, separated by commas
    #[arg(long, value_enum, value_name = "PEERS", value_delimiter = ',')]
    peers: Vec<Peer>,
    /// List the cases and programs, and end
    #[arg(long)]
    pub(crate) list: bool,
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

impl Args {
    pub(crate) fn cases(&self) -> Vec<Case> {
        named_or_all(&self.cases)
    }

    pub(crate) fn peers(&self) -> Vec<Peer> {
        named_or_all(&self.peers)
    }

    pub(crate) fn print_list(&self) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "cases:")?;
        for case in self.cases() {
            writeln!(out, "  {:18} {}", case.name(), case.title())?;
        }
        writeln!(out, "peers:")?;
        for peer in self.peers() {
            let value = peer.to_possible_value();
            let flag = value.as_ref().map_or("", |value| value.get_name());
            writeln!(out, "  {flag:18} {}: {}", peer.name(), peer.note())?;
        }
        Ok(())
    }
}
