//! The flags that say what is logged, and how.

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Logging")]
pub(crate) struct LogArgs {
    /// How log lines on standard error look
    #[arg(
        long,
        env = "GREENROOM_LOG_FORMAT",
        value_name = "FORMAT",
        default_value = "human"
    )]
    pub(crate) log_format: LogFormat,

    /// What is logged: error, warn, info, debug, trace, off, or TARGET=LEVEL,…
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
