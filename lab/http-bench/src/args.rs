//! The driver's flags.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::cases::Case;

const QUICK_ROUNDS: usize = 3;
const QUICK_SECONDS: u32 = 1;

/// Greenroom beside the physical limit and its peers, in CPU time per request.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Interleaved rounds of each case
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Seconds of load in each measurement
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=30))]
    seconds: u32,
    /// Only this case; may be repeated
    #[arg(long, value_enum, value_name = "CASE")]
    only: Vec<Case>,
    /// Three rounds of one second: to see that everything runs, not to quote
    #[arg(long)]
    quick: bool,
    /// Leave Greenroom out
    #[arg(long)]
    pub(crate) peers_only: bool,
    /// Write every sample to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Keep the printed report as lab/results/DATE-http.md
    #[arg(long)]
    pub(crate) save: bool,
}

impl Args {
    pub(crate) fn cases(&self) -> Vec<Case> {
        if self.only.is_empty() {
            Case::value_variants().to_vec()
        } else {
            self.only.clone()
        }
    }

    pub(crate) fn rounds(&self) -> usize {
        if self.quick {
            QUICK_ROUNDS
        } else {
            self.rounds.max(1)
        }
    }

    pub(crate) fn seconds(&self) -> u32 {
        if self.quick {
            QUICK_SECONDS
        } else {
            self.seconds
        }
    }
}
