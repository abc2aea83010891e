//! The command line. Each flag is defined once, here, and gives the parser, the help and the
//! completions.

pub(crate) mod bench;
mod check;
mod demo;
mod limits;
mod listen;
mod log;
mod psgi;
mod serve;
mod stage;
mod value;

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

pub(crate) use log::{LogArgs, LogFormat};
pub(crate) use psgi::Gateways;
pub(crate) use serve::ServeArgs;

const EXIT_STATUSES: &str = "\
Exit statuses:
  0  the work is done; a drained server cut nobody off
  1  serving failed, or the drain's deadline or a second signal cut somebody off or killed a worker
  2  nothing was started: the command line is wrong, an address cannot be listened on, or the
     application cannot be loaded

`greenroom bench` has statuses of its own, which its --help lists";

/// A web application server that keeps a slow request from holding up a fast one, and a load generator
#[derive(Debug, Parser)]
#[command(name = "greenroom", version, after_help = EXIT_STATUSES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Bench(Box<bench::BenchArgs>),
    Completions(CompletionsArgs),
    Serve(Box<ServeArgs>),
}

impl Args {
    /// Reads a command line, the program's name first.
    pub(crate) fn read(
        words: impl IntoIterator<Item: Into<OsString> + Clone>,
    ) -> Result<Self, clap::Error> {
        let mut command = Self::command();
        let matches = command.try_get_matches_from_mut(words)?;
        let args = Self::from_arg_matches(&matches)?;
        if let (Command::Serve(serve), Some((name, matches))) =
            (&args.command, matches.subcommand())
            && let Some(command) = command.find_subcommand_mut(name)
            && let Some(fault) = check::fault(serve, matches, command)
        {
            return Err(command.error(fault.0, fault.1));
        }
        Ok(args)
    }
}

/// Print the completion script for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: greenroom completions bash > \
                        ~/.local/share/bash-completion/completions/greenroom")]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_consistent() {
        Args::command().debug_assert();
    }
}
