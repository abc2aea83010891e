//! The turn: its holder runs the actor. There is one for each actor, and its lane hands it out.

use std::cell::UnsafeCell;
use std::ptr::NonNull;

use super::envelope::{Chain, Envelope};
use super::lane::{Lane, Push};
use super::running::Running;
use crate::actor::Actor;
use crate::cell::{After, AnyCell, Body, Shared};
use crate::dispatcher::Pace;
use crate::panics::{catch, contain};

/// An actor with all that belongs to it.
pub(crate) struct ActorCell<A: Actor> {
    lane: Lane,
    pub(crate) shared: Shared<A>,
    body: UnsafeCell<Body<A>>,
}

// SAFETY: the lane and `Shared` are `Sync`; the body, which is `Send`, is only reached by the
// holder of the turn.
unsafe impl<A: Actor> Sync for ActorCell<A> {}
// SAFETY: as above.
unsafe impl<A: Actor> Send for ActorCell<A> {}

/// A check of what the two above rest on.
const _: () = {
    const fn is_sync<T: Sync>() {}
    const fn is_send<T: Send>() {}

    #[expect(dead_code, reason = "the compiler checks it for every actor")]
    fn of_every_actor<A: Actor>() {
        is_sync::<Shared<A>>();
        is_sync::<Lane>();
        is_send::<Body<A>>();
    }
};

/// The right to run one actor. Its holder must see to it that the actor is run, or it is stuck.
#[must_use = "an actor whose turn is lost never runs again"]
pub(crate) struct Turn(NonNull<dyn AnyCell>);

// SAFETY: cells are `Sync`, and the body that the turn gives access to is `Send`.
unsafe impl Send for Turn {}

impl Turn {
    /// Runs the actor. The turn comes back if there is more to do.
    pub(crate) fn run(self, pace: &Pace, running: &Running) -> Option<Self> {
        // SAFETY: a cell whose turn exists is alive: its body holds a reference to it (`Body::me`),
        // which only the turn's holder can let go, at the actor's end.
        let cell = unsafe { self.0.as_ref() };
        let lane: *const Lane = cell.lane();
        match self.activate(cell, pace, running)? {
            After::Again => Some(self),
            After::Rest { is_suspended } => {
                // SAFETY: until it is given back here, the turn keeps the cell alive. The reference
                // covers nothing but an atomic, so the cell may be freed by others before it ends.
                let is_given_back = unsafe { (*lane).rest(is_suspended) };
                if is_given_back { None } else { Some(self) }
            }
            After::Ended(cell) => {
                contain("what an actor was made with, when it was dropped", || {
                    drop(cell);
                });
                None
            }
        }
    }

    /// Runs the actor, and contains its panics. A user's type may panic when it is dropped,
    /// formatted or woken, where no handler runs: that ends the actor, and concerns no other on the
    /// worker.
    fn activate(&self, cell: &dyn AnyCell, pace: &Pace, running: &Running) -> Option<After> {
        let panic = match catch(|| cell.run(self, pace, running)) {
            Ok(after) => return Some(after),
            Err(panic) => panic,
        };
        let mut after = None;
        contain("an actor at its end, which is lost", || {
            after = Some(cell.collapse(self, &panic));
        });
        after
    }

    /// Returns the cell, as long as the turn is held.
    pub(crate) fn cell(&self) -> &dyn AnyCell {
        // SAFETY: as in `run`.
        unsafe { self.0.as_ref() }
    }
}

impl<A: Actor> ActorCell<A> {
    pub(crate) fn new(shared: Shared<A>, body: Body<A>) -> Self {
        Self {
            lane: Lane::new(),
            shared,
            body: UnsafeCell::new(body),
        }
    }

    /// Puts a message into the mailbox. The caller gets the turn if nobody has it, or the message
    /// back if the mailbox is closed.
    pub(crate) fn push(&self, envelope: Envelope<A>) -> Result<Option<Turn>, Envelope<A>> {
        let link = envelope.into_link();
        // SAFETY: the link is ours; if the lane is closed it comes back.
        match unsafe { self.lane.push(link) } {
            Push::Queued => Ok(None),
            Push::Turn => Ok(Some(self.turn())),
            // SAFETY: the lane did not take the link, which came from an envelope for `A`.
            Push::Closed => Err(unsafe { Envelope::from_link(link) }),
        }
    }

    /// Makes the actor look at its control lane. Returns the turn if nobody had it.
    pub(crate) fn signal(&self) -> Option<Turn> {
        self.lane.signal().then(|| self.turn())
    }

    /// Takes the turn of an actor that has nothing to do.
    pub(crate) fn claim(&self) -> Option<Turn> {
        self.lane.claim().then(|| self.turn())
    }

    /// Gives the turn back, or returns it if something came in the meantime. Unlike [`Turn::run`],
    /// for a caller that holds a reference to the cell.
    pub(crate) fn give_back(&self, turn: Turn) -> Option<Turn> {
        self.check(&turn);
        if self.lane.rest(false) {
            None
        } else {
            Some(turn)
        }
    }

    /// # Panics
    ///
    /// If the turn is another actor's.
    pub(crate) fn body<'t>(&'t self, turn: &'t Turn) -> &'t Body<A> {
        self.check(turn);
        // SAFETY: there is one turn, and its holder's thread is the only one to reach the body,
        // which is not `Sync`. No exclusive reference to the body is ever made.
        unsafe { &*self.body.get() }
    }

    /// Takes all messages so far, the oldest first.
    pub(crate) fn take(&self, turn: &Turn) -> Chain<A> {
        self.check(turn);
        // SAFETY: all links of this lane came from envelopes for `A`, and were taken just now.
        unsafe { Chain::from_links(self.lane.take()) }
    }

    pub(crate) fn lane(&self) -> &Lane {
        &self.lane
    }

    fn turn(&self) -> Turn {
        let cell: &dyn AnyCell = self;
        Turn(NonNull::from(cell))
    }

    fn check(&self, turn: &Turn) {
        let mine: *const () = (&raw const *self).cast();
        assert!(
            std::ptr::addr_eq(turn.0.as_ptr(), mine),
            "the turn is another actor's"
        );
    }
}

impl<A: Actor> Drop for ActorCell<A> {
    fn drop(&mut self) {
        // Links that nobody took belong to the lane.
        let links = self.lane.take();
        // SAFETY: as in `take`; nobody else reaches a cell that is dropped.
        drop(unsafe { Chain::<A>::from_links(links) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Empty;
    impl Actor for Empty {}

    #[test]
    fn an_actor_without_state_fits_into_168_bytes() {
        let counts_of_its_reference = 2 * size_of::<usize>();
        assert!(size_of::<ActorCell<Empty>>() + counts_of_its_reference <= 168);
    }
}
