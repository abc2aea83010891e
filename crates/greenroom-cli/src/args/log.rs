//! Flags of logging.

use std::path::PathBuf;

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Logging")]
pub(crate) struct LogArgs {
    /// Format of log lines
    #[arg(
        long,
        env = "GREENROOM_LOG_FORMAT",
        value_name = "FORMAT",
        default_value = "human"
    )]
    pub(crate) log_format: LogFormat,

    /// Level of the lines to log: error, warn, info, debug, trace, off, or TARGET=LEVEL,…
    #[arg(
        long,
        env = "RUST_LOG",
        value_name = "LEVEL",
        default_value = "info",
        value_parser = filter
    )]
    pub(crate) log_level: EnvFilter,

    /// Log no line for each request
    #[arg(long, env = "GREENROOM_NO_ACCESS_LOG")]
    pub(crate) no_access_log: bool,

    /// Write the lines for requests to this file, whatever --log-level says, instead of standard
    /// error
    ///
    /// As with --error-log, lines are added to a file that is there. SIGUSR1 has the files
    /// reopened, by the next line that is written, after they were moved away: their directory
    /// must let the server's user do so.
    #[arg(
        long,
        env = "GREENROOM_ACCESS_LOG",
        value_name = "FILE",
        conflicts_with = "no_access_log"
    )]
    pub(crate) access_log: Option<PathBuf>,

    /// Write all other lines to this file, the application's included, instead of standard error
    #[arg(long, env = "GREENROOM_ERROR_LOG", value_name = "FILE")]
    pub(crate) error_log: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people; coloured on a terminal
    Human,
    /// One JSON object a line
    Json,
}

fn filter(text: &str) -> Result<EnvFilter, String> {
    EnvFilter::try_new(text).map_err(|error| error.to_string())
}
