use std::sync::Arc;

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
