//! Flags of the server's user, its group, and the file of its process number.

use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Process")]
#[expect(clippy::doc_markdown, reason = "the text is shown on a terminal")]
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

    /// Let applications start programs that gain privileges: setuid and setgid ones, such as sudo
    /// and some sendmails
    ///
    /// Without this flag no process of the server can gain any, once the addresses are bound
    /// (PR_SET_NO_NEW_PRIVS). Capabilities that are left then are given up in any case, unless it
    /// serves as root.
    #[arg(long, env = "GREENROOM_ALLOW_NEW_PRIVILEGES")]
    pub(crate) allow_new_privileges: bool,

    /// Let the system write core dumps although the memory holds the keys of certificates
    ///
    /// Without this flag a server that speaks TLS leaves none (PR_SET_DUMPABLE), and only root can
    /// attach a debugger to it.
    #[arg(long, env = "GREENROOM_CORE_DUMPS")]
    pub(crate) core_dumps: bool,
}
