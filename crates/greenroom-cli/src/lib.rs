//! The program `greenroom`, as a library so that its tests can reach the demo application.

mod args;
mod bench;
mod completions;
pub mod demo;
mod exit;
mod logging;
mod serve;

use std::process::ExitCode;

use args::{Args, Command};

/// Does what the command line asks, and returns the program's exit status.
///
/// A command line that cannot be understood ends the process here, with status 2.
#[must_use]
pub fn run() -> ExitCode {
    let args = Args::read(std::env::args_os()).unwrap_or_else(|error| error.exit());
    match args.command {
        Command::Bench(args) => bench::run(&args),
        Command::Completions(args) => completions::print(args.shell),
        Command::Serve(args) => serve::run(&args),
    }
}
