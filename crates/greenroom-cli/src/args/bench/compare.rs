//! Flags of `greenroom bench compare`.

use std::path::PathBuf;
use std::time::Duration;

use greenroom_load::compare::{Contender, Cores};

use super::{LoadArgs, RequestArgs};
use crate::args::value;

const HELP: &str = "\
Each round starts every server once, one at a time, and the first one once more as a control;
every second round goes backwards. A command is split into words as a shell does, but run without
one; it must stay in the foreground. Its URL is the last word.

Examples:
  greenroom bench compare -k -c 64 -t 5 \\
      --server 'a=./server-a --port 5001 http://127.0.0.1:5001/hello' \\
      --server 'b=./server-b --port 5002 http://127.0.0.1:5002/hello'
  greenroom bench compare -k --ramp 0..5000 -t 20 --rounds 3 --plot both.svg \\
      --server 'a=…' --server 'b=…'

Exit statuses:
  0    every round was run
  1    a server failed, or the servers respond differently
  2    nothing was started: the command line is wrong
  130  it was interrupted; the complete rounds are reported";

/// Compare servers under the same load, with paired ratios and their 95 % intervals
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct CompareArgs {
    /// A server: its name, its command and its URL; may be repeated, the others are held against
    /// the first
    #[arg(long, value_name = "NAME=COMMAND URL", required = true)]
    pub(crate) server: Vec<Contender>,

    /// Rounds, from 1 to 99; less than 6 cannot show a difference
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 7,
        value_parser = clap::value_parser!(u32).range(1..=99)
    )]
    pub(crate) rounds: u32,

    /// Duration of the warm-up of each server
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = value::time)]
    pub(crate) warm_up: Duration,

    /// Cores of the servers, such as 0-2 [default: all but those of the load]
    #[arg(long, value_name = "CORES")]
    pub(crate) server_cores: Option<Cores>,

    /// Cores of the load, such as 3 [default: the last one]
    #[arg(long, value_name = "CORES")]
    pub(crate) load_cores: Option<Cores>,

    /// Longest time that a server may take until it accepts connections
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = value::positive_time)]
    pub(crate) start_timeout: Duration,

    /// Accept servers whose first responses differ
    #[arg(long)]
    pub(crate) allow_different_answers: bool,

    #[command(flatten)]
    pub(crate) load: LoadArgs,

    #[command(flatten)]
    pub(crate) request: RequestArgs,

    /// Show no progress
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,

    /// Write all rounds and ratios as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Draw all servers in one figure
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,
}
