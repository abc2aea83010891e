//! What the repository does to itself: `cargo xtask --help` lists the tasks.

mod tidy;
mod tools;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

#[derive(Parser)]
#[command(bin_name = "cargo xtask", about = "What the repository does to itself")]
enum Task {
    /// Checks what compiler and clippy do not: arrows between crates, lengths, unused
    /// dependencies, documentation, text files
    Tidy,
    /// Installs the foreign programs that `make test` and `make bench-http` use
    Tools,
    /// Installs the Perl servers that `make bench-psgi` measures beside ours
    Peers,
}

fn main() -> Result<ExitCode> {
    match Task::parse() {
        Task::Tidy => tidy::run(),
        Task::Peers => tools::run_peers().map(|()| ExitCode::SUCCESS),
        Task::Tools => tools::run().map(|()| ExitCode::SUCCESS),
    }
}
