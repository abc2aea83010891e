//! The phases of an actor's life.

use std::cell::Cell;
use std::sync::Arc;

use tokio::time::Instant;

use super::Ending;
use crate::supervision::{Cause, Failure};

/// The phase of an actor's life.
pub(super) enum Phase {
    /// Its state is to be made: for the first time, or after this failure.
    New,
    Renewed(Arc<Failure>),
    /// `started` or `restarted` runs.
    Starting,
    /// It handles messages. If its lane is closed it was stopped, and handles the last.
    Running,
    /// A message that was handled outside of the actor's own turn failed, and is a dead letter.
    Broken(Broken),
    /// It failed, and waits for its supervisor.
    Failed(Failed),
    /// It is restarted when its children have ended.
    Restarting(Restarting),
    /// It waits for its children to end.
    Ending(Ending),
    /// `stopped` runs.
    Stopping,
    Ended,
}

/// A failure that the supervisor decides about.
pub(super) struct Failed {
    pub(super) failure: Arc<Failure>,
    /// The end of a linked actor meanwhile. It takes this one down if it is to go on as it is.
    pub(super) lost: Option<Box<Failure>>,
}

/// A restart that waits for children.
pub(super) struct Restarting {
    pub(super) failure: Arc<Failure>,
    /// The moment in which they were told to end.
    pub(super) begun: Instant,
}

/// A failure, and the message whose handler failed.
pub(super) struct Broken {
    pub(super) cause: Cause,
    pub(super) message: &'static str,
}

/// The phase of one actor, in nine bytes: the phases in which actors stay are plain.
pub(super) struct PhaseCell {
    plain: Cell<Plain>,
    rich: Cell<Option<Box<Phase>>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Plain {
    New,
    Starting,
    Running,
    Stopping,
    Ended,
    /// The other cell has it.
    Rich,
}

impl PhaseCell {
    pub(super) fn is_running(&self) -> bool {
        self.plain.get() == Plain::Running
    }

    pub(super) fn enter(&self, phase: Phase) {
        let plain = match phase {
            Phase::New => Plain::New,
            Phase::Starting => Plain::Starting,
            Phase::Running => Plain::Running,
            Phase::Stopping => Plain::Stopping,
            Phase::Ended => Plain::Ended,
            rich => {
                self.rich.set(Some(Box::new(rich)));
                Plain::Rich
            }
        };
        self.plain.set(plain);
    }

    /// Takes the phase out; it must be entered again, or another.
    pub(super) fn take(&self) -> Phase {
        match self.plain.get() {
            Plain::New => Phase::New,
            Plain::Starting => Phase::Starting,
            Plain::Running => Phase::Running,
            Plain::Stopping => Phase::Stopping,
            Plain::Ended => Phase::Ended,
            Plain::Rich => *self
                .rich
                .take()
                .expect("a rich phase is in its cell until it is taken"),
        }
    }
}

impl Default for PhaseCell {
    fn default() -> Self {
        Self {
            plain: Cell::new(Plain::New),
            rich: Cell::new(None),
        }
    }
}
