use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// The reasons why an application could not be started or reloaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A setting is invalid.
    #[error("{setting} is {problem}")]
    Setting {
        /// The setting's name, as that of the builder's method.
        setting: &'static str,
        /// The value, and the values that are allowed.
        problem: String,
    },
    /// There is no such file, or it cannot be read.
    #[error("cannot read the application {}: {source}", path.display())]
    Application {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// There is no Perl by this name.
    #[error(
        "no perl: tried `{}`; install Debian's package perl, or name another one by --perl",
        perl.display()
    )]
    NoPerl {
        /// The name or path that was tried.
        perl: PathBuf,
    },
    /// Perl cannot be run.
    #[error("cannot run `{}`: {source}", perl.display())]
    Perl {
        /// The name or path of Perl.
        perl: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The application, or a module that was asked for, cannot be loaded.
    #[error("cannot load {application}:\n{message}")]
    Load {
        /// The application's file.
        application: String,
        /// Perl's message.
        message: String,
    },
    /// A Perl process ended before it was ready.
    #[error(
        "{process} of {application} ended before it was ready ({status}){said}",
        said = quoted(said)
    )]
    Ended {
        /// The application's file.
        application: String,
        /// The process, in words.
        process: &'static str,
        /// The status with which it ended, if known.
        status: EndStatus,
        /// The last lines that the process wrote, if they are known to be its own; else empty.
        said: String,
    },
    /// A Perl process was not ready in time.
    #[error("{process} of {application} was not ready within {limit:?} (start_timeout)")]
    Timeout {
        /// The application's file.
        application: String,
        /// The process, in words.
        process: &'static str,
        /// The time that the process had.
        limit: Duration,
    },
    /// The private directory for sockets and Perl files cannot be used.
    #[error("cannot use the directory {}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The private directory's path is too long for sockets.
    #[error(
        "the path of {} has {bytes} bytes; {allowed} are allowed for sockets in it: set \
         RUNTIME_DIRECTORY or TMPDIR to a shorter one",
        path.display()
    )]
    DirectoryLength {
        /// The directory.
        path: PathBuf,
        /// The bytes of its path.
        bytes: usize,
        /// The bytes that a path may have.
        allowed: usize,
    },
    /// Standard input is not the socket of a Perl process.
    #[error(
        "cannot attach to standard input: {source}; it must be a socket, as plackup -s Greenroom \
         gives"
    )]
    Attach {
        /// The system's error.
        source: io::Error,
    },
    /// A channel between this process and Perl cannot be used.
    #[error("no connection with {process} of {application}: {source}")]
    Channel {
        /// The application's file.
        application: String,
        /// The process, in words.
        process: &'static str,
        /// The system's error, or a violation of the protocol.
        source: io::Error,
    },
    /// Changes of files cannot be watched.
    #[error("cannot watch files for changes: {source}")]
    Watch {
        /// The error of the watch.
        source: notify::Error,
    },
    /// The gateway was shut down.
    #[error("the gateway is shut down")]
    ShutDown,
}

/// The status with which a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndStatus(pub(crate) Option<ExitStatus>);

impl EndStatus {
    /// Converts a status of wait(2).
    pub(crate) fn of_wait(status: u32) -> ExitStatus {
        ExitStatus::from_raw(status.cast_signed())
    }
}

impl std::fmt::Display for EndStatus {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(status) => status.fmt(out),
            None => out.write_str("status unknown"),
        }
    }
}

fn quoted(said: &str) -> String {
    match said {
        "" => String::new(),
        said => format!(":\n{said}"),
    }
}
