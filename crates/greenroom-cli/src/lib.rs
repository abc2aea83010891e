//! The program `greenroom`, as a library so that its tests can reach the demo application.

mod args;
mod bench;
mod completions;
pub mod demo;
mod exit;
mod logging;
#[cfg(feature = "otlp")]
mod otlp;
mod pid;
mod serve;
mod sites;
mod status;
mod upgrade;

use std::process::ExitCode;

use args::{Args, Command};

/// Does what the command line asks, and returns the program's exit status.
///
/// A command line that cannot be understood ends the process here, with status 2.
#[must_use]
pub fn run() -> ExitCode {
    let words = std::env::args_os();
    let args = Args::read(words).unwrap_or_else(|error| {
        serve::tell_version_before(&error);
        error.exit()
    });
    match args.command {
        Command::Bench(args) => bench::run(&args),
        Command::Check(args) => sites::check(&args),
        Command::Completions(args) => completions::print(args.shell),
        Command::Config(args) => sites::config(args),
        Command::Reload(args) => sites::reload(&args),
        Command::Schema(_) => sites::schema(),
        Command::Serve(args) => match args.sites_file() {
            Some(path) => sites::serve(path),
            None => serve::run(&args, None),
        },
        Command::Status(args) => status::run(&args),
        Command::Upgrade(args) => upgrade::run(&args),
    }
}
