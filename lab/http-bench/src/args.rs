//! The driver's flags.

use bench_kit::{RunOptions, named_or_all};
use clap::Parser;

use crate::cases::Case;

/// Greenroom beside the physical limit and its peers, in CPU time per request.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Only this case; may be repeated
    #[arg(long, value_enum, value_name = "CASE")]
    only: Vec<Case>,
    /// Leave Greenroom's servers out; its load generator stays
    #[arg(long)]
    pub(crate) peers_only: bool,
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

impl Args {
    pub(crate) fn cases(&self) -> Vec<Case> {
        named_or_all(&self.only)
    }
}
