//! The driver's flags.

use bench_kit::RunOptions;
use clap::Parser;

use crate::cases::Case;

/// Greenroom beside the physical limit and its peers, in CPU time per request.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Only this case; may be repeated
    #[arg(long, value_enum, value_name = "CASE")]
    only: Vec<Case>,
    /// The cases of a server at the edge, unless others are named, in a report of their own
    #[arg(long)]
    pub(crate) edge: bool,
    /// Leave Greenroom's servers out; its load generator stays
    #[arg(long)]
    pub(crate) peers_only: bool,
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

impl Args {
    pub(crate) fn cases(&self) -> Vec<Case> {
        if self.only.is_empty() {
            Case::all(self.edge)
        } else {
            self.only.clone()
        }
    }
}
