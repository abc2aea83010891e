//! The exit statuses of the program, and how it says what went wrong.

use std::fmt::Display;
use std::process::ExitCode;

use clap::error::ErrorKind;

/// It ran, and failed: serving ended by a fault, or a drain cut somebody off; nothing answered a load.
pub(crate) const FAILED: u8 = 1;

/// It did not start: the command line or an address is at fault. clap uses the same number.
pub(crate) const NOT_STARTED: u8 = 2;

/// A measurement broke a condition that it was given, or missed its rate.
pub(crate) const GATE: u8 = 3;

/// A signal ended it; shells use the same number for SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// Prints `error: message` as clap does, and gives `status` to exit with.
pub(crate) fn with_message(status: u8, message: impl Display) -> ExitCode {
    complain(message);
    ExitCode::from(status)
}

/// Prints `error: message` as clap does.
pub(crate) fn complain(message: impl Display) {
    let error = clap::Error::raw(ErrorKind::Io, format!("{message}\n"));
    // If standard error is closed there is nobody left to tell.
    let _ = error.print();
}
