use std::sync::Arc;

use super::Terminated;
use crate::actor::Actor;
use crate::raw::Envelope;
use crate::reference::ActorId;
use crate::supervision::Failure;

/// What overtakes the mailbox.
pub(crate) enum Control<A: Actor> {
    Signal(Signal),
    /// A notice, handled as a message.
    Deliver(Envelope<A>),
}

impl<A: Actor> Control<A> {
    /// Whether another may say the same; only then it is worth a look at what is queued.
    pub(crate) fn may_repeat(&self) -> bool {
        use Control::Signal as Is;
        matches!(
            self,
            Is(Signal::Stop | Signal::Kill | Signal::ChildEnded | Signal::Unused)
        )
    }

    /// Whether what is queued says all that the other would, so that repeated calls do not pile up.
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

/// What concerns an actor of any type.
pub(crate) enum Signal {
    /// Handle what waits, then end.
    Stop,
    /// End after the message at hand.
    Kill,
    ChildEnded,
    /// Nobody but actors uses the system any more: for the root.
    Unused,
    ChildFailed {
        child: ChildKey,
        failure: Arc<Failure>,
    },
    /// The rest before a restart is over.
    RestOver {
        child: ChildKey,
        failure: Arc<Failure>,
    },
    Verdict(Verdict),
    /// An actor ended that this one is linked to, or it gave itself up.
    Fail(Box<Failure>),
}

impl Signal {
    /// The failure that it is about, if it is about one that others know.
    pub(super) fn failure(&self) -> Option<Arc<Failure>> {
        match self {
            Self::ChildFailed { failure, .. }
            | Self::RestOver { failure, .. }
            | Self::Verdict(Verdict::Restart(failure) | Verdict::Stop(failure)) => {
                Some(Arc::clone(failure))
            }
            _ => None,
        }
    }
}

/// Where a parent finds a child. The slot may be another child's by then, the number never.
#[derive(Clone, Copy)]
pub(crate) struct ChildKey {
    pub(crate) slot: u32,
    pub(crate) id: ActorId,
}

/// What the supervisor decided.
#[derive(Clone)]
pub(crate) enum Verdict {
    Resume,
    Restart(Arc<Failure>),
    /// End as failed.
    Stop(Arc<Failure>),
}

/// Told of the end of an actor.
pub(crate) type Watcher = Box<dyn FnOnce(Terminated) + Send>;
