//! The driver's flags.

use bench_kit::{RunOptions, named_or_all};
use clap::Parser;

use crate::cases::Case;

/// Measure the delay of fast requests by slow ones: Greenroom beside axum, Node, Go and Starman
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Only this case; may be repeated
    #[arg(long, value_enum, value_name = "CASE")]
    only: Vec<Case>,
    /// Leave out the peers, and measure Greenroom alone
    #[arg(long)]
    pub(crate) ours_only: bool,
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

impl Args {
    pub(crate) fn cases(&self) -> Vec<Case> {
        named_or_all(&self.only)
    }
}
