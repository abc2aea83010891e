//! Flags of the output.

use std::path::PathBuf;
use std::time::Duration;

use greenroom_load::report::gate::Gate;

use crate::args::value;

#[derive(Debug, clap::Args)]
#[expect(clippy::doc_markdown, reason = "the text is shown on a terminal")]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// End with status 3 if this is true of the main stream, such as 'p99>50ms' or 'errors>0.1%';
    /// may be repeated
    #[arg(long, value_name = "CONDITION")]
    pub(crate) fail_if: Vec<Gate>,

    /// Show no progress
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,

    /// Interval of the progress lines and of the points of the time line
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = value::interval)]
    pub(crate) interval: Duration,

    /// 2 shows the first response's head, 3 also what was sent, 4 also the response's body
    #[arg(
        short = 'v',
        long,
        value_name = "LEVEL",
        default_value_t = 1,
        value_parser = clap::value_parser!(u8).range(0..=4)
    )]
    pub(crate) verbosity: u8,

    /// Leave out the closing table of percentages
    #[arg(short = 'd', long)]
    pub(crate) no_percentages: bool,

    /// Leave out standard deviations, and warnings about them
    #[arg(short = 'S', long)]
    pub(crate) no_deviation: bool,

    /// Write everything that was measured as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Write the time line, a row for each interval
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,

    /// Write the time within which each percentage was served, as ab's CSV file
    #[arg(short = 'e', long, value_name = "FILE")]
    pub(crate) percentages: Option<PathBuf>,

    /// Write the times of single requests, as ab's file for gnuplot; at most the first 1,000,000
    #[arg(short = 'g', long, value_name = "FILE")]
    pub(crate) gnuplot: Option<PathBuf>,

    /// Write a log of HdrHistogram with the latencies
    #[arg(long, value_name = "FILE")]
    pub(crate) hdr: Option<PathBuf>,

    /// Draw the figures: response time against rate and time, and the percentiles
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,

    /// Write one self-contained page with figures and tables
    #[arg(long, value_name = "FILE.html")]
    pub(crate) html: Option<PathBuf>,
}
