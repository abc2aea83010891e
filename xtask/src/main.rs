//! The repository's own tasks: `cargo xtask --help` lists them.

mod benchmarks;
mod book;
mod test;
mod tidy;
mod tools;
mod wrap;

use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;

#[derive(Parser)]
#[command(bin_name = "cargo xtask", about = "What the repository does to itself")]
enum Task {
    /// Writes the figures of docs/benchmarks.md, out of the newest reports in lab/results
    Benchmarks,
    /// Makes a book of docs, in target/book/html, and checks its links
    Book,
    /// Builds all tests of the workspace, and runs their programs a few at a time
    Test(test::Options),
    /// Checks what compiler and clippy do not: arrows between crates, lengths, unused
    /// dependencies, documentation, text files
    Tidy,
    /// Installs the foreign programs that `make test` and `make lab` use
    Tools {
        /// Only these, such as `node` and `python`
        steps: Vec<String>,
    },
    /// Installs the servers that benchmarks measure beside ours
    Peers,
    /// Installs what makes and tries the Debian package and the image
    Packagers,
    /// Installs a program that cargo builds, such as cargo-deb, unless it is there, and prints its
    /// path
    CargoTool {
        /// Its name
        name: String,
    },
    /// Breaks the lines of Markdown files that are over 100 columns
    Wrap {
        /// The files
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

fn main() -> Result<ExitCode> {
    match Task::parse() {
        Task::Benchmarks => benchmarks::run(&repository()?)?,
        Task::Book => book::run(&repository()?, &tools::cargo_tool("mdbook")?)?,
        Task::Test(options) => return test::run(&repository()?, &options),
        Task::Tidy => return tidy::run(&repository()?),
        Task::CargoTool { name } => {
            let path = tools::cargo_tool(&name)?;
            writeln!(io::stdout(), "{}", path.display())?;
        }
        Task::Packagers => tools::run_packagers()?,
        Task::Peers => tools::run_peers()?,
        Task::Tools { steps } => tools::run(&steps)?,
        Task::Wrap { files } => wrap::run(&files)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The repository that cargo was called in. Not as of compiling: clones that share a target
/// directory share this program.
fn repository() -> Result<PathBuf> {
    let package = env::var_os("CARGO_MANIFEST_DIR").context("call this as `cargo xtask TASK`")?;
    let root = Path::new(&package).join("..");
    let found = root.canonicalize();
    found.with_context(|| format!("the repository {} is not there", root.display()))
}
