//! The foreign programs: their paths and their runs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Returns a path below `target/tools`.
///
/// # Panics
/// When it is not there; the message says what installs it.
pub(crate) fn installed(relative: &str) -> PathBuf {
    let path = path(relative);
    assert!(
        path.exists(),
        "{} is not installed: run `cargo xtask tools`",
        path.display()
    );
    path
}

/// Returns a program of the distribution.
///
/// # Panics
/// When it is not on the path; the message says what installs it.
pub(crate) fn system(program: &'static str) -> &'static str {
    assert!(
        is_on_path(program),
        "`{program}` is not installed: run `cargo xtask tools`"
    );
    program
}

/// Returns `true` if the system has this program, for those that `cargo xtask tools` does not
/// install.
pub(crate) fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

pub(crate) fn path(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../target/tools")
        .join(relative)
}

/// Returns the path of a file beside these tests.
pub(crate) fn script(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/outside")
        .join(relative)
}

/// Returns a command that `timeout` of the coreutils ends at the deadline, with all processes that
/// it started.
pub(crate) fn bounded(program: impl AsRef<OsStr>, deadline: Duration) -> Command {
    let mut command = Command::new("timeout");
    command
        .arg("--kill-after=5")
        .arg(deadline.as_secs().to_string())
        .arg(program)
        .stdin(Stdio::null());
    command
}

pub(crate) struct Finished {
    pub(crate) succeeded: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Finished {
    /// Asserts that the program succeeded; the message of the panic holds all that it wrote.
    pub(crate) fn expect_success(self, what: &str) -> Self {
        assert!(
            self.succeeded,
            "{what} failed\n--- stdout\n{}\n--- stderr\n{}",
            self.stdout, self.stderr
        );
        self
    }
}

pub(crate) fn run(command: &mut Command) -> Finished {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("the command can be started");
    Finished {
        succeeded: status.success(),
        stdout: String::from_utf8_lossy(&stdout).into_owned(),
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    }
}
