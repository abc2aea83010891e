//! The driver's flags.

use std::path::PathBuf;

use bench_kit::{RunOptions, named_or_all};
use clap::Parser;

use crate::cases::Case;

/// Perl applications behind Greenroom, beside Twiggy, Feersum, Starman and Starlet.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Only this case; may be repeated
    #[arg(long, value_enum, value_name = "CASE")]
    only: Vec<Case>,
    /// Leave Greenroom's server out; its load generator stays
    #[arg(long)]
    pub(crate) peers_only: bool,
    /// Leave out the peers
    #[arg(long, conflicts_with = "peers_only")]
    pub(crate) ours_only: bool,
    /// Perl library with a Feersum of its own, for its rows: keep-alive came with 1.500
    #[arg(long, value_name = "FOLDER")]
    pub(crate) feersum_lib: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

impl Args {
    pub(crate) fn cases(&self) -> Vec<Case> {
        named_or_all(&self.only)
    }
}
