use std::io;
use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::Status;
use crate::status::Shown;

/// A handle of a server, for any thread: it ends the server, and shows its status. Clones are
/// handles of the same server.
#[derive(Clone, Debug)]
pub struct Handle(Arc<Shown>);

impl Handle {
    pub(super) fn new(shown: Arc<Shown>) -> Self {
        Self(shown)
    }

    /// Stops accepting, finishes what is under way, and ends. Idle connections are closed after
    /// their [grace](crate::Limits::drain_grace), responses from now on say `Connection: close`, a
    /// WebSocket gets a close frame, and handlers that ask for the [notice](crate::Draining) are
    /// notified.
    pub fn drain(&self) {
        self.0.server.drain();
    }

    /// Ends at once. What is under way is aborted.
    pub fn abort(&self) {
        self.0.server.abort();
    }

    /// Returns the state of the server at this moment.
    #[must_use]
    pub fn status(&self) -> Status {
        self.0.status()
    }
}

/// Catches SIGTERM and SIGINT from now on: the first one drains the server, a second one aborts it.
/// For programs that do more before they serve than a
/// [builder](crate::ServerBuilder::shutdown_on_signals) knows of. The task ends with the second
/// signal. Under Perl's `start_server`, which sends SIGTERM to all old processes whenever it starts
/// a new one, only SIGINT counts as the second.
///
/// # Errors
///
/// If the signals cannot be caught.
///
/// # Panics
///
/// If called outside a tokio runtime.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the task has the handle to itself"
)]
pub fn shutdown_on_signals(server: Handle) -> io::Result<JoinHandle<()>> {
    greenroom_server::shutdown_on_signals(server.0.server.clone())
}
