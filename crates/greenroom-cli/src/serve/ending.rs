//! Reports on the end of serving: in the log, by a message and by the exit status.

use std::io;
use std::process::ExitCode;

use greenroom::psgi::{ShutdownReport, StartError};
use greenroom::{DrainReport, Error};
use greenroom_sites::SitesError;
use tracing::field::display;

use crate::exit;

/// The outcome of serving.
#[derive(Debug, Default)]
pub(super) struct Ended {
    pub(super) drain: DrainReport,
    /// Of each PSGI application.
    pub(super) gateways: Vec<ShutdownReport>,
    /// True if a signal ended the program before the applications had ended.
    pub(super) in_haste: bool,
}

impl From<DrainReport> for Ended {
    fn from(drain: DrainReport) -> Self {
        Self {
            drain,
            ..Self::default()
        }
    }
}

pub(super) fn report(ended: &Ended) -> ExitCode {
    for cut in &ended.drain.aborted {
        let peer = cut.peer.map(display);
        tracing::warn!(route = cut.route, age = ?cut.age, peer, "cut off");
    }
    let killed = ended.gateways.iter().flat_map(|report| &report.killed);
    let killed: Vec<_> = killed.map(|worker| worker.pid).collect();
    match (ended.drain.aborted.len(), killed.len()) {
        (0, 0) if !ended.in_haste => {
            tracing::info!("ended; nobody was cut off");
            return ExitCode::SUCCESS;
        }
        (0, 0) => tracing::warn!("ended before the workers had ended"),
        (0, _) => tracing::warn!(
            ?killed,
            "ended; workers that were not done in time were killed"
        ),
        (count, _) => tracing::warn!(count, "ended before all requests were finished"),
    }
    ExitCode::from(exit::FAILED)
}

/// Prints the reason why nothing was started.
pub(super) fn refuse(error: &anyhow::Error) -> ExitCode {
    let message = match error.downcast_ref() {
        Some(Error::Bind { source, .. }) => format!("{error}{}", advice(source.kind())),
        _ => whole(error),
    };
    exit::with_message(exit::NOT_STARTED, message)
}

/// Prints the reason why serving failed, or did not begin.
pub(super) fn explain(error: &anyhow::Error) -> ExitCode {
    if let Some(error) = error.downcast_ref::<StartError>() {
        return exit::with_message(exit::NOT_STARTED, error);
    }
    match error.downcast_ref::<SitesError>() {
        Some(error) => exit::with_message(exit::NOT_STARTED, error),
        None => exit::with_message(exit::FAILED, whole(error)),
    }
}

/// Returns the message of an error with its causes, each of them once: many errors tell their cause
/// themselves.
pub(super) fn whole(error: &anyhow::Error) -> String {
    let mut message = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if message.is_empty() {
            message = cause;
        } else if !message.contains(&cause) {
            message = format!("{message}: {cause}");
        }
    }
    message
}

fn advice(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::AddrInUse => {
            "\n\nAnother program listens there; --listen names another place."
        }
        io::ErrorKind::AddrNotAvailable => "\n\nThis machine has no such address.",
        io::ErrorKind::NotFound => "\n\nThe directory of the socket must exist.",
        io::ErrorKind::PermissionDenied => {
            "\n\nPorts below 1024 need root or CAP_NET_BIND_SERVICE; \
             a socket needs a directory that can be written."
        }
        _ => "",
    }
}
