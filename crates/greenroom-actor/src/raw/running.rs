//! The actor that runs on a thread.

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::Arc;

use super::turn::ActorCell;
use crate::actor::Actor;
use crate::cell::AnyCell;

/// A reference to an actor of any type, of which counted references can be made.
pub(crate) trait Handle {
    fn cell(&self) -> &dyn AnyCell;
    fn keep(&self) -> Arc<dyn AnyCell>;
}

impl<A: Actor> Handle for Arc<ActorCell<A>> {
    fn cell(&self) -> &dyn AnyCell {
        &**self
    }

    fn keep(&self) -> Arc<dyn AnyCell> {
        Self::clone(self) as _
    }
}

/// The actor that runs on a thread, for the code that it calls to find it. To keep a counted
/// reference to it instead would cost each turn two atomic operations.
pub(crate) struct Running(Cell<Option<NonNull<dyn Handle>>>);

// SAFETY: between two calls of `during` it is empty; while one lasts it is borrowed, and stays on
// its thread because it is not `Sync`.
unsafe impl Send for Running {}

impl Running {
    pub(crate) const fn new() -> Self {
        Self(Cell::new(None))
    }

    /// Calls a function while this actor runs. Calls may nest.
    pub(crate) fn during<A: Actor, R>(
        &self,
        actor: &Arc<ActorCell<A>>,
        call: impl FnOnce() -> R,
    ) -> R {
        let actor: &dyn Handle = actor;
        let _restore = Restore {
            running: self,
            before: self.0.replace(Some(NonNull::from(actor))),
        };
        call()
    }

    /// Calls a function with the actor that runs, if one does.
    pub(crate) fn with<R>(&self, call: impl FnOnce(&dyn Handle) -> R) -> Option<R> {
        let actor = self.0.get()?;
        // SAFETY: it is there only within `during`, further up on this thread's stack, which
        // borrows the actor until it has taken it back.
        Some(call(unsafe { actor.as_ref() }))
    }
}

/// A guard that restores the actor before, also when the function panics.
struct Restore<'a> {
    running: &'a Running,
    before: Option<NonNull<dyn Handle>>,
}

impl Drop for Restore<'_> {
    fn drop(&mut self) {
        self.running.0.set(self.before);
    }
}
