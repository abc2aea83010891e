//! The driver's flags.

use bench_kit::RunOptions;
use clap::{Parser, ValueEnum};

use crate::cases::Case;

/// Whether a slow request holds up a fast one: Greenroom beside axum and Node.
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
        if self.only.is_empty() {
            Case::value_variants().to_vec()
        } else {
            self.only.clone()
        }
    }
}
