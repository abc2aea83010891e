use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use greenroom_stage::Rejected;
use tokio::time::timeout;

use super::run::{Given, Origin};
use super::{Pool, Run};

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
        matches!(*self.turn(), Turn::Over)
    }

    /// Gives it its turn and returns the waker. It still waits then: no waiter leaves while the
    /// pool is locked.
    pub(super) fn call(&self, given: Given) -> Option<Waker> {
        match std::mem::replace(&mut *self.turn(), Turn::Come(given)) {
            Turn::ToCome(waker) => waker,
            Turn::Come(_) | Turn::TooLate(_) | Turn::Over => None,
        }
    }

    /// Rejects it because its turn came too late, and returns the waker.
    pub(super) fn reject(&self, rejected: Rejected) -> Option<Waker> {
        let mut turn = self.turn();
        let Turn::ToCome(waker) = &mut *turn else {
            return None;
        };
        let waker = waker.take();
        *turn = Turn::TooLate(rejected);
        waker
    }

    /// Ends the wait and returns the turn that it had.
    pub(super) fn leave(&self) -> Turn {
        std::mem::take(&mut *self.turn())
    }

    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
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

/// A place in the queue; a future of its turn. Dropping it releases the run that it was given.
#[derive(Debug)]
pub(crate) struct Ticket {
    pool: Arc<Pool>,
    waiter: Arc<Waiter>,
}

impl Ticket {
    pub(super) fn new(pool: Arc<Pool>, waiter: Arc<Waiter>) -> Self {
        Self { pool, waiter }
    }

    /// Waits for a run; an error if its turn does not come in time.
    pub(crate) async fn turn(self) -> Result<Run, Rejected> {
        let (pool, waiter) = (Arc::clone(&self.pool), Arc::clone(&self.waiter));
        let turn = timeout(waiter.patience, self).await;
        turn.unwrap_or_else(|_| Err(pool.too_late(&waiter)))
    }
}

impl Future for Ticket {
    type Output = Result<Run, Rejected>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut turn = self.waiter.turn();
        if let Turn::ToCome(waker) = &mut *turn {
            *waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        match std::mem::take(&mut *turn) {
            Turn::Come(given) => Poll::Ready(Ok(Run::new(Arc::clone(&self.pool), given))),
            Turn::TooLate(rejected) => Poll::Ready(Err(rejected)),
            Turn::ToCome(_) | Turn::Over => unreachable!("a ticket is polled to its end once"),
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.waiter.is_over() {
            return;
        }
        if let Turn::Come(given) = self.pool.leave_queue(&self.waiter) {
            drop(Run::new(Arc::clone(&self.pool), given));
        }
    }
}
