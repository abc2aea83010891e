//! The actors that an actor watches or is linked to.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use crate::actor::Actor;
use crate::cell::AnyCell;
use crate::id::ActorId;
use crate::reference::ActorRef;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tie {
    Watch,
    Link,
}

/// The ties of one actor. Kept so that no end is reported twice, and that an actor which ends
/// leaves nothing behind with those that live on.
#[derive(Default)]
pub(crate) struct Watched(BTreeMap<(ActorId, Tie), Weak<dyn AnyCell>>);

impl Watched {
    /// Adds a tie. Returns `false` if there is such a tie to a living actor already.
    pub(crate) fn add<B: Actor>(&mut self, other: &ActorRef<B>, tie: Tie) -> bool {
        // At sizes that double: so each entry is looked at a constant number of times. A watch ends
        // with the notice of the other's end, which may be on its way.
        if self.0.len().is_power_of_two() {
            self.0
                .retain(|(_, tie), other| *tie == Tie::Watch || other.strong_count() > 0);
        }
        let cell = Arc::downgrade(&other.0);
        let before = self.0.insert((other.id(), tie), cell);
        before.is_none() || AnyCell::is_ended(&*other.0)
    }

    pub(crate) fn remove(&mut self, id: ActorId) {
        self.0.remove(&(id, Tie::Watch));
        self.0.remove(&(id, Tie::Link));
    }

    /// Removes a tie. Returns `false` if there was none.
    pub(crate) fn remove_tie(&mut self, id: ActorId, tie: Tie) -> bool {
        self.0.remove(&(id, tie)).is_some()
    }

    /// Removes the actor with this number from the watchers of all of them.
    pub(crate) fn leave_all(&mut self, me: ActorId) {
        for ((_, tie), other) in std::mem::take(&mut self.0) {
            if let Some(other) = other.upgrade() {
                other.unwatch(me, tie);
            }
        }
    }
}
