//! The driver's flags.

use std::path::PathBuf;
use std::time::Duration;

use bench_kit::{Keep, named_or_all};
use clap::Parser;

use crate::client::Kind;
use crate::server::Contestant;

/// Failed requests while servers are upgraded again and again under load.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Only this server; may be repeated
    #[arg(long, value_enum, value_name = "SERVER")]
    only: Vec<Contestant>,
    /// Only this kind of client; may be repeated
    #[arg(long, value_enum, value_name = "KIND")]
    kind: Vec<Kind>,
    /// Upgrades of each server
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    upgrades: u32,
    /// Seconds in which upgrades are begun: a server that needs longer gets fewer
    #[arg(long, default_value_t = 420, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds_max: u32,
    /// Milliseconds from the end of an upgrade to the next one
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(..=60_000))]
    pause: u32,
    /// Seconds that each upload and download takes
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=30))]
    transfer: u32,
    /// Three upgrades, and transfers of 3 s: to see that everything runs, not to quote
    #[arg(long)]
    quick: bool,
    /// The program greenroom, instead of one that is built now
    #[arg(long, value_name = "FILE")]
    pub(crate) greenroom: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) keep: Keep,
}

/// The size of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) upgrades: u32,
    pub(crate) upgrades_time_max: Duration,
    pub(crate) pause: Duration,
    pub(crate) transfer: Duration,
}

impl Args {
    pub(crate) fn contestants(&self) -> Vec<Contestant> {
        named_or_all(&self.only)
    }

    pub(crate) fn kinds(&self) -> Vec<Kind> {
        named_or_all(&self.kind)
    }

    pub(crate) fn plan(&self) -> Plan {
        let (upgrades, transfer) = if self.quick {
            (3, 3)
        } else {
            (self.upgrades, self.transfer)
        };
        Plan {
            upgrades,
            upgrades_time_max: Duration::from_secs(self.seconds_max.into()),
            pause: Duration::from_millis(self.pause.into()),
            transfer: Duration::from_secs(transfer.into()),
        }
    }
}
