//! The common flags of all drivers.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// The files of results.
#[derive(Clone, Debug, Args)]
pub struct Keep {
    /// Write every sample to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Keep the printed report in lab/results
    #[arg(long)]
    pub(crate) save: bool,
}

/// Returns the cases that a command line named; all of them, in their order, if it named none.
#[must_use]
pub fn named_or_all<C: ValueEnum + Clone>(named: &[C]) -> Vec<C> {
    if named.is_empty() {
        C::value_variants().to_vec()
    } else {
        named.to_vec()
    }
}
