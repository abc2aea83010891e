//! The command line. Each flag is defined once, here, which yields the parser, the help and the
//! completions.

pub(crate) mod bench;
mod check;
mod demo;
mod hints;
mod listen;
mod log;
#[cfg(test)]
mod man;
#[cfg(feature = "otlp")]
mod otlp;
#[cfg(test)]
mod page;
#[cfg(test)]
mod plackup;
mod process;
mod psgi;
mod serve;
mod server_keys;
mod settings;
mod sites;
mod stage;
mod status;
mod tls;
mod upgrade;
mod value;

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use greenroom_sites::{Entry, File};

pub(crate) use log::{AccessLogFormat, LogArgs, LogFormat, filter as log_filter};
#[cfg(feature = "otlp")]
pub(crate) use otlp::{OtlpArgs, OtlpTlsArgs};
pub(crate) use process::ProcessArgs;
pub(crate) use psgi::Gateways;
pub(crate) use serve::ServeArgs;
pub(crate) use server_keys::Flags;
pub(crate) use sites::{CheckArgs, ConfigArgs, ReloadArgs, SchemaArgs};
pub(crate) use status::StatusArgs;
pub(crate) use tls::AcmeArgs;
pub(crate) use upgrade::UpgradeArgs;

const EXIT_STATUSES: &str = "\
Exit statuses:
  0  the work is done; a drained server cut nobody off
  1  serving failed, or the drain's deadline or a second signal cut somebody off or killed a worker
  2  nothing was started: the command line is wrong, an address cannot be listened on, or the
     application cannot be loaded

`greenroom bench` and `greenroom status` have statuses of their own, which their --help lists";

/// A web application server that keeps a slow request from holding up a fast one, and a load
/// generator
#[derive(Debug, Parser)]
#[command(name = "greenroom", version, after_help = EXIT_STATUSES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Bench(Box<bench::BenchArgs>),
    Check(CheckArgs),
    Completions(CompletionsArgs),
    Config(ConfigArgs),
    Reload(ReloadArgs),
    Schema(SchemaArgs),
    Serve(Box<ServeArgs>),
    Status(StatusArgs),
    Upgrade(UpgradeArgs),
}

impl Args {
    /// Reads a command line, the program's name first.
    pub(crate) fn read(
        words: impl IntoIterator<Item: Into<OsString> + Clone>,
    ) -> Result<Self, clap::Error> {
        let mut command = Self::command();
        let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
        let matches = command.try_get_matches_from_mut(&words);
        let matches = matches.map_err(|error| with_hint(error, &words, &mut command))?;
        let mut args = Self::from_arg_matches(&matches)?;
        if let (Command::Serve(serve), Some((name, matches))) =
            (&mut args.command, matches.subcommand())
        {
            let of_listen = ["listen", "port", "host"];
            serve.listen.is_said = of_listen.iter().any(|id| is_said(matches, id));
            serve.listen.is_given = of_listen.iter().any(|id| is_given(matches, id));
            if let Some(command) = command.find_subcommand_mut(name)
                && let Some(fault) = check::fault(serve, matches, command)
            {
                return Err(command.error(fault.0, fault.1));
            }
        }
        Ok(args)
    }
}

/// The command line of `greenroom serve` together with its file of sites.
pub(crate) struct WithFile {
    pub(crate) args: Args,
    /// Of the command line and the environment.
    said: ArgMatches,
    /// With what the file sets.
    merged: ArgMatches,
}

impl WithFile {
    /// Reads a command line, the program's name first, and adds what the file sets of the server:
    /// a flag wins over its variable, and that over the file.
    pub(crate) fn read(words: Vec<OsString>, file: Option<&File>) -> Result<Self, clap::Error> {
        let mut first = Args::read(words.clone())?;
        let said = serve_matches(words.clone())?;
        let words = match file {
            Some(file) => server_keys::with_file(words, &said, file),
            None => words,
        };
        let mut args = Args::read(words.clone())?;
        if let (Command::Serve(args), Command::Serve(first)) =
            (&mut args.command, &mut first.command)
        {
            // Only of the command line itself: sockets that are passed on go before the file.
            args.listen.is_said = first.listen.is_said;
        }
        let merged = serve_matches(words)?;
        Ok(Self { args, said, merged })
    }

    /// Returns the settings of the server that are in force.
    pub(crate) fn entries(&self, file: Option<&File>) -> Vec<Entry> {
        Flags::new().entries(file, &self.said, &self.merged)
    }
}

fn serve_matches(words: Vec<OsString>) -> Result<ArgMatches, clap::Error> {
    let mut matches = Args::command().try_get_matches_from(words)?;
    let below = matches.remove_subcommand();
    Ok(below.map(|(_, matches)| matches).unwrap_or_default())
}

/// Returns `true` if the argument stands on the command line.
fn is_said(matches: &ArgMatches, id: &str) -> bool {
    matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// Returns `true` if the argument has no default value.
fn is_given(matches: &ArgMatches, id: &str) -> bool {
    let source = matches.value_source(id);
    source.is_some_and(|source| source != ValueSource::DefaultValue)
}

/// Names the replacement of a flag that other servers have.
fn with_hint(error: clap::Error, words: &[OsString], command: &mut clap::Command) -> clap::Error {
    let is_unknown = error.kind() == ErrorKind::UnknownArgument;
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let name = words.get(1).and_then(|word| word.to_str());
    let serve = name.filter(|name| *name == "serve" && is_unknown);
    let serve = serve.and_then(|name| command.find_subcommand_mut(name));
    let (Some(serve), Some(hint)) = (serve, hints::instead_of(flag)) else {
        return error;
    };
    let text = format!("there is no {flag} in greenroom serve: {hint}");
    serve.error(ErrorKind::UnknownArgument, text)
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
