//! The exit statuses of the program, and how it says what went wrong.

use std::fmt::Display;
use std::process::ExitCode;

use clap::error::ErrorKind;

/// It ran, and failed: serving ended by a fault, or a drain cut somebody off.
pub(crate) const FAILED: u8 = 1;

/// It did not start: the command line or an address is at fault. clap uses the same number.
pub(crate) const NOT_STARTED: u8 = 2;

/// Prints `error: message` as clap does, and gives `status` to exit with.
pub(crate) fn with_message(status: u8, message: impl Display) -> ExitCode {
    let error = clap::Error::raw(ErrorKind::Io, format!("{message}\n"));
    // If standard error is closed there is nobody left to tell.
    let _ = error.print();
    ExitCode::from(status)
}
