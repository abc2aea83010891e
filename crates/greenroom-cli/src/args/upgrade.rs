//! The command that exchanges a server for its next version.

use std::path::PathBuf;
use std::time::Duration;

use super::value;

/// Exchange a server for its next version, without a lost request
///
/// Sends SIGUSR2 and waits for the outcome: the server starts its program anew, from the same path
/// with the same arguments, hands its listening sockets over, and drains once the next version
/// serves. If that does not begin to serve, the server goes on, and the reason is printed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit statuses:
  0  the next version serves; its process number is printed
  1  it did not begin to serve: the server that was to be exchanged still serves. Or the outcome
     was not told, in time or at all: the server's log has it
  2  nothing was asked for: the command line is wrong, or the process is no server that can do it

Examples:
  greenroom upgrade 4321
  greenroom upgrade --pid-file /run/greenroom.pid --timeout 2m")]
#[group(skip)]
pub(crate) struct UpgradeArgs {
    /// The server's process number
    #[arg(value_name = "PID", required_unless_present = "pid_file")]
    pub(crate) pid: Option<i32>,

    /// The file of the server's --pid, instead of PID
    #[arg(long, value_name = "FILE", conflicts_with = "pid")]
    pub(crate) pid_file: Option<PathBuf>,

    /// Time to wait for the outcome, for longer than the server's --upgrade-timeout
    #[arg(
        long,
        value_name = "TIME",
        default_value = "90s",
        value_parser = value::time
    )]
    pub(crate) timeout: Duration,
}
