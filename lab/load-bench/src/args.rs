//! The driver's flags.

use bench_kit::{RunOptions, named_or_all};
use clap::Parser;

use crate::cases::Case;

const QUICK_MINUTES: u32 = 1;

/// The cost of `greenroom bench` beside wrk and ab, and the accuracy of its latencies.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Only this case; may be repeated
    #[arg(long, value_enum, value_name = "CASE")]
    only: Vec<Case>,
    /// Minutes of the case `memory`; with --quick: one minute
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=60))]
    minutes: u32,
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

impl Args {
    pub(crate) fn cases(&self) -> Vec<Case> {
        named_or_all(&self.only)
    }

    pub(crate) fn minutes(&self) -> u32 {
        if self.run.quick {
            QUICK_MINUTES
        } else {
            self.minutes
        }
    }
}
