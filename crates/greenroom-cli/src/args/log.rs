//! Flags of logging.

use std::path::PathBuf;

use clap::ValueEnum;
use tracing_subscriber::filter::{LevelFilter, Targets};

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
    pub(crate) log_level: Targets,

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

    /// Format of the lines for requests (default: that of --log-format)
    ///
    /// Times are in UTC. Of a request that got no response, as its client left, the status is 499.
    /// What is no visible ASCII, a quote or a backslash is written as \xHH.
    #[arg(
        long,
        env = "GREENROOM_ACCESS_LOG_FORMAT",
        value_name = "FORMAT",
        conflicts_with = "no_access_log"
    )]
    pub(crate) access_log_format: Option<AccessLogFormat>,

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AccessLogFormat {
    /// Apache's and nginx' common log format
    Common,
    /// The same with Referer and User-Agent
    Combined,
    /// For people
    Human,
    /// One JSON object a line
    Json,
}

/// Parses a level, or levels by target; of nothing errors are logged.
pub(crate) fn filter(text: &str) -> Result<Targets, String> {
    let directives = text.split(',').map(str::trim);
    let directives: Vec<_> = directives.filter(|word| !word.is_empty()).collect();
    if directives.is_empty() {
        return Ok(Targets::new().with_default(LevelFilter::ERROR));
    }
    let directives = directives.join(",").parse();
    directives.map_err(|error: tracing_subscriber::filter::ParseError| error.to_string())
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn levels_are_for_all_or_for_a_target() {
        for (text, of_all, of_psgi) in [
            ("info", Level::INFO, Level::INFO),
            ("warn, psgi=info", Level::WARN, Level::INFO),
            ("", Level::ERROR, Level::ERROR),
        ] {
            let filter = filter(text).expect(text);
            for (target, level) in [("greenroom_server", of_all), ("psgi", of_psgi)] {
                for other in [Level::ERROR, Level::WARN, Level::INFO, Level::DEBUG] {
                    let is_logged = filter.would_enable(target, &other);
                    assert_eq!(is_logged, other <= level, "{text}: {target}, {other}");
                }
            }
        }
        assert!(filter("psgi=loud").is_err());
    }
}
