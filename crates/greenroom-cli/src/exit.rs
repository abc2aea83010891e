//! The exit statuses of the program, and its error messages.

use std::fmt::Display;
use std::process::ExitCode;

use clap::error::ErrorKind;

/// The status after a failure: serving ended by a fault, a drain aborted a request, or no server
/// responded to a load.
pub(crate) const FAILED: u8 = 1;

/// The status if it did not start: the command line or an address is at fault. clap uses the same
/// number.
pub(crate) const NOT_STARTED: u8 = 2;

/// The status after a measurement that broke a condition or missed its rate.
pub(crate) const GATE: u8 = 3;

/// The status after a signal; shells use the same number for SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// Prints `error: message` as clap does, and returns `status` to exit with.
pub(crate) fn with_message(status: u8, message: impl Display) -> ExitCode {
    complain(message);
    ExitCode::from(status)
}

/// Prints `error: message` as clap does.
pub(crate) fn complain(message: impl Display) {
    let error = clap::Error::raw(ErrorKind::Io, format!("{message}\n"));
    // If standard error is closed there is nowhere to print.
    let _ = error.print();
}
