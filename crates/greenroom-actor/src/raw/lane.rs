//! The lane: one word that is both the mailbox and the schedule flag of an actor.
//!
//! Senders push in front of a linked list; the holder of the turn takes the whole list at once. So
//! there is no ABA problem, and only the taker ever reads a pushed node. The low four bits of the
//! word are flags; nodes are aligned to 16 bytes.

use std::ptr::NonNull;

use super::sync::{AtomicPtr, Ordering};

/// The turn is taken: the actor is in a run queue, or runs.
const SCHEDULED: usize = 1;
/// The control lane or a waker has something for the actor.
const SIGNAL: usize = 2;
/// The actor waits: messages pile up without scheduling it, a signal does.
const SUSPENDED: usize = 4;
/// No more messages.
const CLOSED: usize = 8;
const FLAGS: usize = SCHEDULED | SIGNAL | SUSPENDED | CLOSED;

/// The link of a node in a lane: its first field.
#[repr(C, align(16))]
pub(crate) struct Link {
    pub(crate) next: *mut Link,
}

impl Link {
    pub(crate) const fn new() -> Self {
        Self {
            next: std::ptr::null_mut(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Push {
    /// The receiver is scheduled already, or suspended.
    Queued,
    /// The caller has the turn now.
    Turn,
    Closed,
}

pub(crate) struct Lane {
    word: AtomicPtr<Link>,
}

impl Lane {
    pub(crate) fn new() -> Self {
        Self {
            word: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// # Safety
    ///
    /// `node` is valid, owned by the caller and in no lane. Unless the result is [`Push::Closed`],
    /// it belongs to the lane from now on.
    pub(crate) unsafe fn push(&self, node: NonNull<Link>) -> Push {
        let mut current = self.word.load(Ordering::Relaxed);
        loop {
            let flags = current.addr() & FLAGS;
            if flags & CLOSED != 0 {
                return Push::Closed;
            }
            let is_turn = flags & (SCHEDULED | SUSPENDED) == 0;
            let new_flags = if is_turn { flags | SCHEDULED } else { flags };
            // SAFETY: the node is the caller's until the exchange below succeeds.
            unsafe { (*node.as_ptr()).next = address(current) };
            let new = node.as_ptr().map_addr(|bits| bits | new_flags);
            match self
                .word
                .compare_exchange_weak(current, new, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) if is_turn => return Push::Turn,
                Ok(_) => return Push::Queued,
                Err(found) => current = found,
            }
        }
    }

    /// Makes the holder of the turn look at its control lane. Returns `true` if that is the caller
    /// now.
    pub(crate) fn signal(&self) -> bool {
        let before = self.update(|flags| flags | SIGNAL | SCHEDULED);
        before & SCHEDULED == 0
    }

    /// Takes the turn if nothing waits and nobody has it.
    pub(crate) fn claim(&self) -> bool {
        let idle: *mut Link = std::ptr::null_mut();
        let taken = idle.map_addr(|_| SCHEDULED);
        self.word
            .compare_exchange(idle, taken, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Takes all messages so far, the oldest first. For the holder of the turn.
    pub(crate) fn take(&self) -> *mut Link {
        let mut current = self.word.load(Ordering::Relaxed);
        while !address(current).is_null() {
            let new = std::ptr::null_mut::<Link>().map_addr(|_| current.addr() & FLAGS);
            match self
                .word
                .compare_exchange_weak(current, new, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return oldest_first(address(current)),
                Err(found) => current = found,
            }
        }
        std::ptr::null_mut()
    }

    /// Returns `true` if there was a signal since the last [`acknowledge`](Self::acknowledge).
    pub(crate) fn is_signalled(&self) -> bool {
        self.word.load(Ordering::Relaxed).addr() & SIGNAL != 0
    }

    /// Clears the signals so far, before what they stand for is looked at.
    pub(crate) fn acknowledge(&self) {
        self.update(|flags| flags & !SIGNAL);
    }

    /// Gives the turn back, if no signal and, unless the actor is to be suspended, no message came
    /// in the meantime. Returns `true` if it did; `false` leaves the turn with the caller.
    pub(crate) fn rest(&self, is_suspended: bool) -> bool {
        let mut current = self.word.load(Ordering::Relaxed);
        loop {
            let flags = current.addr() & FLAGS;
            let has_messages = !address(current).is_null();
            if flags & SIGNAL != 0 || (has_messages && !is_suspended) {
                return false;
            }
            let resting = (flags & CLOSED) | if is_suspended { SUSPENDED } else { 0 };
            let new = current.map_addr(|bits| (bits & !FLAGS) | resting);
            match self
                .word
                .compare_exchange_weak(current, new, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(found) => current = found,
            }
        }
    }

    /// Returns `true` if nothing waits, and nobody has the turn.
    pub(crate) fn is_idle(&self) -> bool {
        self.word.load(Ordering::Relaxed).is_null()
    }

    /// Lets no more messages in.
    pub(crate) fn close(&self) {
        self.update(|flags| flags | CLOSED);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.word.load(Ordering::Acquire).addr() & CLOSED != 0
    }

    fn update(&self, change: impl Fn(usize) -> usize) -> usize {
        let mut current = self.word.load(Ordering::Relaxed);
        loop {
            let new = current.map_addr(|bits| (bits & !FLAGS) | change(bits & FLAGS));
            match self
                .word
                .compare_exchange_weak(current, new, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return current.addr() & FLAGS,
                Err(found) => current = found,
            }
        }
    }
}

fn address(word: *mut Link) -> *mut Link {
    word.map_addr(|bits| bits & !FLAGS)
}

fn oldest_first(newest: *mut Link) -> *mut Link {
    let mut rest = newest;
    let mut oldest: *mut Link = std::ptr::null_mut();
    while !rest.is_null() {
        // SAFETY: taken nodes are valid and nobody else's: senders link a node before they publish
        // it with release, and the taker acquired the newest.
        unsafe {
            let next = (*rest).next;
            (*rest).next = oldest;
            oldest = rest;
            rest = next;
        }
    }
    oldest
}
