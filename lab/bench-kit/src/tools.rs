//! Programs that a driver may start.

use std::process::{Command, Stdio};

/// Returns true if a program is on the search path.
#[must_use]
pub fn is_installed(program: &str) -> bool {
    let found = Command::new("which")
        .arg(program)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    found.is_ok_and(|status| status.success())
}
