//! Flags of logging.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use greenroom::ServerTiming;
use tracing_subscriber::filter::{LevelFilter, Targets};

use super::value::positive_time;

#[derive(Debug, clap::Args)]
#[expect(clippy::doc_markdown, reason = "the text is shown on a terminal")]
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
    /// What is no visible ASCII, a quote or a backslash is written as \xHH. The journal takes no
    /// other format than its own.
    #[arg(
        long,
        env = "GREENROOM_ACCESS_LOG_FORMAT",
        value_name = "FORMAT",
        conflicts_with = "no_access_log"
    )]
    pub(crate) access_log_format: Option<AccessLogFormat>,

    /// Log one request of so many, drawn by chance, such as 1/100
    ///
    /// Those that failed (a status of 400 or more, or none) and those that were slow (see
    /// --slow-log-min; else 1 s) are always logged. A line that stands for others says so:
    /// sample=100.
    #[arg(
        long,
        env = "GREENROOM_ACCESS_LOG_SAMPLE",
        value_name = "1/N",
        default_value = "1/1",
        value_parser = sample,
        conflicts_with = "no_access_log"
    )]
    pub(crate) access_log_sample: Sample,

    /// Log where the time of each request went that took this long, such as 1s
    ///
    /// A line of level WARN, target greenroom::slow, with times in microseconds: until the head
    /// and the body had come, in the queues of stages and Perl workers, in code, waiting, and
    /// while the response was sent. At most ten lines a second for each loop.
    #[arg(
        long,
        env = "GREENROOM_SLOW_LOG_MIN",
        value_name = "TIME",
        value_parser = positive_time
    )]
    pub(crate) slow_log_min: Option<Duration>,

    /// Give each request an id, in the field X-Request-Id
    ///
    /// The application, the response and the logs have it. The id that a trusted proxy sends is
    /// taken over, if it is visible ASCII of at most 128 bytes.
    #[arg(long, env = "GREENROOM_REQUEST_ID")]
    pub(crate) request_id: bool,

    /// Responses that say in Server-Timing where their time went
    #[arg(
        long,
        env = "GREENROOM_SERVER_TIMING",
        value_name = "WHICH",
        default_value = "off"
    )]
    pub(crate) server_timing: ServerTimingFor,

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
    /// For the journal of systemd, with the fields as GREENROOM_…; files are for people
    Journald,
}

impl LogFormat {
    /// Returns the format of what does not go to the journal.
    pub(crate) fn of_file(self) -> Self {
        match self {
            Self::Human | Self::Journald => Self::Human,
            Self::Json => Self::Json,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServerTimingFor {
    /// None
    Off,
    /// Those to requests that a trusted proxy sent with a field X-Server-Timing
    Trusted,
    /// All: clients learn much of the server
    All,
}

impl From<ServerTimingFor> for ServerTiming {
    fn from(which: ServerTimingFor) -> Self {
        match which {
            ServerTimingFor::Off => Self::Off,
            ServerTimingFor::Trusted => Self::Trusted,
            ServerTimingFor::All => Self::All,
        }
    }
}

/// One request of so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample(pub(crate) NonZeroU32);

/// The largest N of a sample.
const SAMPLE_MAX: u32 = 1_000_000;

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

/// Parses a share of the requests.
pub(super) fn sample(text: &str) -> Result<Sample, String> {
    let of = text.strip_prefix("1/").and_then(|of| of.parse().ok());
    let of = of.filter(|of: &NonZeroU32| of.get() <= SAMPLE_MAX);
    of.map(Sample)
        .ok_or_else(|| format!("allowed are 1/1, which are all, to 1/{SAMPLE_MAX}"))
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
    fn a_sample_is_one_of_so_many() {
        for (text, expected) in [
            ("1/1", Some(1)),
            ("1/1000000", Some(1_000_000)),
            ("1/1000001", None),
            ("1/0", None),
            ("2/3", None),
            ("0.01", None),
        ] {
            let parsed = sample(text).ok().map(|Sample(of)| of.get());
            assert_eq!(parsed, expected, "{text}");
        }
    }

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
