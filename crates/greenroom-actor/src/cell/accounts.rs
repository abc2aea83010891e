//! Who may put a message into the mailbox.

use super::sync::{AtomicU32, Ordering};

/// How many messages were let in, and how many were taken out: a sender pays one atomic
/// read-modify-write, the actor a plain store.
pub(crate) struct Accounts {
    let_in: AtomicU32,
    taken: AtomicU32,
}

impl Accounts {
    pub(crate) fn new() -> Self {
        Self {
            let_in: AtomicU32::new(0),
            taken: AtomicU32::new(0),
        }
    }

    /// A place for one message, if there is one. Never more than `capacity` at a time.
    pub(crate) fn reserve(&self, capacity: u32) -> bool {
        let before = self.let_in.fetch_add(1, Ordering::Relaxed);
        let waiting = before.wrapping_sub(self.taken.load(Ordering::Acquire));
        let has_room = waiting < capacity;
        if !has_room {
            self.give_back();
        }
        has_room
    }

    /// A place for a message that must not be refused.
    pub(crate) fn let_in(&self) {
        self.let_in.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives back a place that was reserved and not used.
    pub(crate) fn give_back(&self) {
        self.let_in.fetch_sub(1, Ordering::Relaxed);
    }

    /// One message was taken out. For whoever has the turn.
    pub(crate) fn take(&self) {
        let taken = self.taken.load(Ordering::Relaxed).wrapping_add(1);
        self.taken.store(taken, Ordering::Release);
    }

    /// Messages that wait, at about this moment.
    pub(crate) fn waiting(&self) -> u32 {
        let taken = self.taken.load(Ordering::Acquire);
        let waiting = self.let_in.load(Ordering::Relaxed).wrapping_sub(taken);
        // Read one after the other, the two may seem to cross.
        if waiting > u32::MAX / 2 { 0 } else { waiting }
    }
}
