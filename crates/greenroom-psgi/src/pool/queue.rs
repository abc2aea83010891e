use std::task::Waker;
use std::time::{Duration, Instant};

use greenroom_stage::Rejected;
use parking_lot::Mutex;

use super::charge::{Given, Origin};

/// A request that waits for its turn.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) origin: Origin,
    pub(super) since: Instant,
    /// The wait that was predicted when it came.
    pub(super) predicted: Duration,
    /// The time after which it is dropped.
    pub(super) patience: Duration,
    pub(super) turn: Mutex<Turn>,
}

#[derive(Debug, Default)]
pub(super) enum Turn {
    ToCome(Option<Waker>),
    Come(Given),
    TooLate(Rejected),
    /// The client has left, or the turn was taken.
    #[default]
    Over,
}

impl Waiter {
    pub(super) fn is_over(&self) -> bool {
        matches!(*self.turn.lock(), Turn::Over)
    }

    /// Gives it its turn and returns the waker. It still waits then: no waiter leaves while the
    /// pool is locked.
    pub(super) fn call(&self, given: Given) -> Option<Waker> {
        match std::mem::replace(&mut *self.turn.lock(), Turn::Come(given)) {
            Turn::ToCome(waker) => waker,
            Turn::Come(_) | Turn::TooLate(_) | Turn::Over => None,
        }
    }

    /// Rejects it because its turn came too late, and returns the waker.
    pub(super) fn reject(&self, rejected: Rejected) -> Option<Waker> {
        let mut turn = self.turn.lock();
        let Turn::ToCome(waker) = &mut *turn else {
            return None;
        };
        let waker = waker.take();
        *turn = Turn::TooLate(rejected);
        waker
    }

    /// Ends the wait and returns the turn that it had.
    pub(super) fn leave(&self) -> Turn {
        std::mem::take(&mut *self.turn.lock())
    }
}

/// The wakers of requests whose turn has come, to be woken when no lock is held.
#[derive(Debug, Default)]
pub(super) struct Turns(Vec<Waker>);

impl Turns {
    pub(super) fn add(&mut self, waker: Option<Waker>) {
        self.0.extend(waker);
    }

    pub(super) fn announce(self) {
        self.0.into_iter().for_each(Waker::wake);
    }
}
