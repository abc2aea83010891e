//! The driver's flags.

use std::path::PathBuf;

use bench_kit::{RunOptions, named_or_all};
use clap::Parser;

use crate::cases::Case;

/// The social network under load: likes, uploads, the live feed, third parties, replicas.
#[derive(Debug, Parser)]
#[expect(clippy::doc_markdown, reason = "the text is shown on a terminal")]
pub(crate) struct Args {
    /// Only this case; may be repeated
    #[arg(long, value_enum, value_name = "CASE")]
    case: Vec<Case>,
    /// The program FerretDB, which stands for MongoDB [default: the one that `cargo xtask tools`
    /// builds]
    #[arg(long, value_name = "FILE")]
    pub(crate) ferretdb: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

impl Args {
    pub(crate) fn cases(&self) -> Vec<Case> {
        named_or_all(&self.case)
    }
}
