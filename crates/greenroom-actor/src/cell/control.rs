use std::sync::Arc;

use tokio::time::Instant;

use super::Terminated;
use crate::actor::Actor;
use crate::id::ActorId;
use crate::raw::Envelope;
use crate::supervision::Failure;

/// An item of the control lane, which overtakes the mailbox.
pub(crate) enum Control<A: Actor> {
    Signal(Signal),
    /// A notice, handled as a message.
    Deliver(Envelope<A>),
}

impl<A: Actor> Control<A> {
    /// Returns `true` if another may say the same: only then the queue is searched for it.
    pub(crate) fn may_repeat(&self) -> bool {
        use Control::Signal as Is;
        matches!(
            self,
            Is(Signal::Stop | Signal::Kill | Signal::ChildEnded | Signal::Unused)
        )
    }

    /// Returns `true` if this says all that the other would, so that repeated calls do not pile up.
    pub(crate) fn includes(&self, other: &Self) -> bool {
        use Control::Signal as Is;
        matches!(
            (self, other),
            (Is(Signal::Stop), Is(Signal::Stop))
                | (Is(Signal::Kill), Is(Signal::Kill | Signal::Stop))
                | (Is(Signal::ChildEnded), Is(Signal::ChildEnded))
                | (Is(Signal::Unused), Is(Signal::Unused))
        )
    }
}

/// A signal to an actor of any type.
pub(crate) enum Signal {
    /// Handle what waits, then end.
    Stop,
    /// End after the message at hand.
    Kill,
    ChildEnded,
    /// For the root: nobody but actors uses the system any more.
    Unused,
    ChildFailed {
        child: ChildKey,
        failure: Arc<Failure>,
    },
    /// The rest before a restart is over.
    RestOver {
        child: ChildKey,
        verdict: Verdict,
    },
    /// The time is over that children had to end for the restart that began then.
    GraceOver {
        begun: Instant,
    },
    Verdict(Verdict),
    /// A linked actor ended, or this one reported a failure of its own.
    Fail(Box<Failure>),
}

impl Signal {
    /// Returns the failure that it is about, if others know that too.
    pub(super) fn failure(&self) -> Option<Arc<Failure>> {
        match self {
            Self::ChildFailed { failure, .. } => Some(Arc::clone(failure)),
            Self::RestOver { verdict, .. } | Self::Verdict(verdict) => verdict.failure(),
            _ => None,
        }
    }
}

/// The place of a child in its parent's list. The slot may be another child's by then, the number
/// never.
#[derive(Clone, Copy)]
pub(crate) struct ChildKey {
    pub(crate) slot: u32,
    pub(crate) id: ActorId,
}

/// A decision of the supervisor.
#[derive(Clone)]
pub(crate) enum Verdict {
    Resume,
    Restart(Arc<Failure>),
    /// End as failed.
    Stop(Arc<Failure>),
}

impl Verdict {
    fn failure(&self) -> Option<Arc<Failure>> {
        match self {
            Self::Restart(failure) | Self::Stop(failure) => Some(Arc::clone(failure)),
            Self::Resume => None,
        }
    }
}

/// A function that is called at the end of an actor.
pub(crate) type Watcher = Box<dyn FnOnce(Terminated) + Send>;
