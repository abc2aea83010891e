//! Flags and commands of files of sites.

use std::ffi::OsString;
use std::path::PathBuf;

pub(super) const HEADING: &str = "Sites";

/// Flags of `greenroom serve FILE.toml`.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct SitesArgs {
    /// Take over the file of sites when it changes, as at SIGHUP
    #[arg(long, env = "GREENROOM_WATCH")]
    pub(crate) watch: bool,
}

/// Check a file of sites
///
/// All faults are printed, each with its line, its column and what is allowed. What the file names
/// is looked at too: directories, applications, files of passwords.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit statuses:
  0  the file can be served
  2  it has faults, or cannot be read")]
pub(crate) struct CheckArgs {
    /// The file
    #[arg(value_name = "FILE.toml")]
    pub(crate) file: PathBuf,
}

/// Print the settings that are in force, and where each comes from
///
/// A flag wins over its environment variable, that over the file, and the file over the default.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  greenroom config
  greenroom config greenroom.toml
  greenroom config greenroom.toml -- --loops 2")]
pub(crate) struct ConfigArgs {
    /// The file of sites; without one, the settings of the server alone
    #[arg(value_name = "FILE.toml")]
    pub(crate) file: Option<PathBuf>,

    /// Flags of `greenroom serve`
    #[arg(last = true, value_name = "FLAGS")]
    pub(crate) flags: Vec<OsString>,
}

/// Print the JSON Schema of files of sites, for editors
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: greenroom schema > greenroom.schema.json, and in the first line of the file of sites
  #:schema ./greenroom.schema.json")]
pub(crate) struct SchemaArgs {}

/// Have a server take over its file of sites, or reload its PSGI application, by SIGHUP
///
/// The server's log tells the outcome.
#[derive(Debug, clap::Args)]
pub(crate) struct ReloadArgs {
    /// The file of the server's --pid
    #[arg(long, env = "GREENROOM_PID", value_name = "FILE")]
    pub(crate) pid: PathBuf,
}
