//! The flags that all drivers have.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

const QUICK_ROUNDS: usize = 3;
const QUICK_SECONDS: u32 = 1;

/// How much to measure, and where to keep it.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// Interleaved rounds of each case
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Seconds of load in each measurement
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=30))]
    seconds: u32,
    /// Three rounds of one second: to see that everything runs, not to quote
    #[arg(long)]
    pub quick: bool,
    /// Write every sample to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Keep the printed report in lab/results
    #[arg(long)]
    pub(crate) save: bool,
}

impl RunOptions {
    /// Interleaved rounds of each case, at least 1.
    #[must_use]
    pub fn rounds(&self) -> usize {
        if self.quick {
            QUICK_ROUNDS
        } else {
            self.rounds.max(1)
        }
    }

    /// Seconds of load in each measurement.
    #[must_use]
    pub fn seconds(&self) -> u32 {
        if self.quick {
            QUICK_SECONDS
        } else {
            self.seconds
        }
    }
}

/// The cases that a command line named; all of them, in their order, if it named none.
#[must_use]
pub fn named_or_all<C: ValueEnum + Clone>(named: &[C]) -> Vec<C> {
    if named.is_empty() {
        C::value_variants().to_vec()
    } else {
        named.to_vec()
    }
}
