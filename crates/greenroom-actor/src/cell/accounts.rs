//! The bound of a mailbox.

use super::sync::{AtomicU32, Ordering};

/// The numbers of messages that were let in and taken out: a sender pays one atomic
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

    /// Reserves a place for one message. Returns `false` if there are `capacity` already.
    ///
    /// It takes none before it is sure of it: a place that is taken and given back could, in
    /// between, make the actor believe that there is no room for senders that wait.
    pub(crate) fn reserve(&self, capacity: u32) -> bool {
        let mut let_in = self.let_in.load(Ordering::Relaxed);
        loop {
            let waiting = let_in.wrapping_sub(self.taken.load(Ordering::Acquire));
            let is_stale = waiting > u32::MAX / 2;
            if !is_stale && waiting >= capacity {
                return false;
            }
            let exchanged = self.let_in.compare_exchange_weak(
                let_in,
                let_in.wrapping_add(1),
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match exchanged {
                Ok(_) => return true,
                Err(found) => let_in = found,
            }
        }
    }

    /// Reserves a place for a message that must not be refused.
    pub(crate) fn let_in(&self) {
        self.let_in.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives back a place in a mailbox that was closed in the meantime.
    pub(crate) fn give_back(&self) {
        self.let_in.fetch_sub(1, Ordering::Relaxed);
    }

    /// Notes that one message was taken out. For the holder of the turn.
    pub(crate) fn take(&self) {
        let taken = self.taken.load(Ordering::Relaxed).wrapping_add(1);
        self.taken.store(taken, Ordering::Release);
    }

    /// Returns the number of messages that wait, at about this moment.
    pub(crate) fn waiting(&self) -> u32 {
        let taken = self.taken.load(Ordering::Acquire);
        let waiting = self.let_in.load(Ordering::Relaxed).wrapping_sub(taken);
        // Read one after the other, the two may seem to cross.
        if waiting > u32::MAX / 2 { 0 } else { waiting }
    }
}
