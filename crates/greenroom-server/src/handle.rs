use std::sync::Arc;

use tokio::sync::watch;

use crate::LoopStatus;
use crate::drain::Phase;
use crate::event_loop::Roster;
use crate::upgrade::stops;

/// Ends a server, from any thread.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(crate) phase: Arc<watch::Sender<Phase>>,
    pub(crate) loops: Arc<Roster>,
}

impl Handle {
    /// Stops accepting, finishes what is under way, and ends. Idle connections are closed after
    /// their [grace](crate::Limits::drain_grace), responses from now on say `Connection: close`, a
    /// WebSocket gets a close frame, and handlers that ask for the [notice](crate::Draining) get
    /// it.
    pub fn drain(&self) {
        self.advance(Phase::Draining);
    }

    /// [Drains](Self::drain) as what ends the process: the service manager is told (`STOPPING=1`)
    /// if `NOTIFY_SOCKET` names one.
    pub fn stop(&self) {
        self.drain();
        stops();
    }

    /// Drains, because the next version serves.
    pub(crate) fn hand_over(&self) {
        self.advance(Phase::HandingOver);
    }

    pub(crate) fn is_serving(&self) -> bool {
        *self.phase.borrow() == Phase::Serving
    }

    /// Ends at once. What is under way is aborted.
    pub fn abort(&self) {
        self.advance(Phase::Ending);
    }

    /// Returns `true` if the server drains, or has ended.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        *self.phase.borrow() != Phase::Serving
    }

    /// Returns `true` once the server serves; all its [loops](Self::loops) are shown from then on.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.loops.has_begun()
    }

    /// Returns the state of the server's loops, each from when the server serves until it ends, in
    /// the order of their indexes.
    #[must_use]
    pub fn loops(&self) -> Vec<LoopStatus> {
        self.loops.status()
    }

    fn advance(&self, to: Phase) {
        self.phase.send_if_modified(|phase| {
            let later = to > *phase;
            *phase = to.max(*phase);
            later
        });
    }
}
