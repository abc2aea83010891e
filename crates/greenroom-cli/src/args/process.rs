//! Flags of the server's user, its group, and the file of its process number.

use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Process")]
pub(crate) struct ProcessArgs {
    /// Serve as this user, by name or number; for a start as root
    ///
    /// The addresses are bound and the files of --pid, --access-log and --error-log opened before;
    /// the application is loaded as the user, with the user's groups. Sockets' files, and logs
    /// that are new, become the user's.
    #[arg(long, env = "GREENROOM_USER", value_name = "USER")]
    pub(crate) user: Option<String>,

    /// Serve with this group, by name or number, instead of the user's own
    #[arg(long, env = "GREENROOM_GROUP", value_name = "GROUP")]
    pub(crate) group: Option<String>,

    /// Keep the process number in this file while serving
    #[arg(long, env = "GREENROOM_PID", value_name = "FILE")]
    pub(crate) pid: Option<PathBuf>,
}
