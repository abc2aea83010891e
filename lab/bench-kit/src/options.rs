//! The common flags of all drivers.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

const ROUNDS: usize = 7;
const SECONDS: u32 = 3;
const QUICK_ROUNDS: usize = 3;
const QUICK_SECONDS: u32 = 1;

/// The size of a measurement in rounds, and the files of its results.
#[derive(Clone, Debug, Args)]
pub struct RunOptions {
    /// Interleaved rounds of each case [default: 7, unless a case says otherwise]
    #[arg(long)]
    rounds: Option<usize>,
    /// Seconds of load in each measurement [default: 3, unless a case says otherwise]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=30))]
    seconds: Option<u32>,
    /// Three rounds of one second: to see that everything runs, not to quote
    #[arg(long)]
    pub quick: bool,
    #[command(flatten)]
    pub(crate) keep: Keep,
}

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

impl RunOptions {
    /// Returns the interleaved rounds of each case, at least 1.
    #[must_use]
    pub fn rounds(&self) -> usize {
        self.rounds_or(ROUNDS)
    }

    /// Returns the interleaved rounds of a case that has a default of its own, at least 1.
    #[must_use]
    pub fn rounds_or(&self, default: usize) -> usize {
        if self.quick {
            QUICK_ROUNDS
        } else {
            self.rounds.unwrap_or(default).max(1)
        }
    }

    /// Returns the seconds of load in each measurement.
    #[must_use]
    pub fn seconds(&self) -> u32 {
        self.seconds_or(SECONDS)
    }

    /// Returns the seconds of load in each measurement of a case that has a default of its own.
    #[must_use]
    pub fn seconds_or(&self, default: u32) -> u32 {
        if self.quick {
            QUICK_SECONDS
        } else {
            self.seconds.unwrap_or(default)
        }
    }
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
