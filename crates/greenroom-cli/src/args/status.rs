//! Flags of `greenroom status`.

use std::time::Duration;

use super::value;
use crate::status::Target;

/// Print what the operators' page of a server shows
///
/// It asks the address of the server's --status-listen: what needs attention, the last minutes,
/// loops, stages, routes, who is refused, actors, workers, certificates and upstreams.
#[derive(Debug, clap::Args)]
#[expect(clippy::doc_markdown, reason = "the text is shown on a terminal")]
#[command(after_help = "\
Values that stand out have a ! behind them, and those that are bad have !!

Exit statuses:
  0  it is printed
  1  nothing listens there, it is no admin server, or it does not respond in time
  2  the command line is wrong

Examples:
  greenroom status 127.0.0.1:5001
  greenroom status http://localhost:5001/ --watch
  greenroom status unix:/run/greenroom/admin.sock --watch 500ms
  greenroom status :5001 --json | jq .stages")]
pub(crate) struct StatusArgs {
    /// The address of the server's --status-listen: 127.0.0.1:5001, [::1]:5001, localhost:5001,
    /// :5001, http://127.0.0.1:5001/ or unix:/path/to.sock
    #[arg(value_name = "ADDRESS", env = "GREENROOM_STATUS_LISTEN")]
    pub(crate) address: Target,

    /// Print it again and again, with this time between (default: 2s)
    ///
    /// A server that does not respond is tried again, too.
    #[arg(
        long,
        value_name = "TIME",
        num_args = 0..=1,
        default_missing_value = "2s",
        value_parser = value::positive_time
    )]
    pub(crate) watch: Option<Duration>,

    /// Print all of it as JSON, for scripts; with --watch one line each
    #[arg(long)]
    pub(crate) json: bool,

    /// Time for the server to respond
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10s",
        value_parser = value::positive_time
    )]
    pub(crate) timeout: Duration,
}
