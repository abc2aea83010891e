//! `greenroom completions`.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Args;
use crate::exit;

pub(crate) fn print(shell: Shell) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "greenroom", &mut script);
    match io::stdout().write_all(&script) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::with_message(exit::FAILED, format!("cannot write the script: {error}")),
    }
}
