//! The command line. Each flag is defined once, here, and gives the parser, the help and the
//! completions.

pub(crate) mod bench;
mod limits;
mod log;
mod serve;
mod stage;
mod value;

use clap::{Parser, Subcommand};
use clap_complete::Shell;

pub(crate) use log::{LogArgs, LogFormat};
pub(crate) use serve::ServeArgs;

const EXIT_STATUSES: &str = "\
Exit statuses:
  0  the work is done; a drained server cut nobody off
  1  serving failed, or the drain's deadline or a second signal cut somebody off
  2  nothing was started: the command line is wrong, or an address cannot be listened on

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
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn definitions_are_consistent() {
        Args::command().debug_assert();
    }
}
