use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use greenroom_stage::Rejected;

use super::routes::Route;
use super::run::Given;
use super::{Pool, Run};

/// A request that waits for its turn.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) route: Route,
    pub(super) since: Instant,
    /// How long it was to wait, by what was known when it came.
    pub(super) predicted: Duration,
    turn: Mutex<Turn>,
}

#[derive(Debug)]
enum Turn {
    ToCome(Option<Waker>),
    Come(Given),
    TooLate(Rejected),
    /// Its client has left, or it has had its turn.
    Over,
}

impl Waiter {
    pub(super) fn new(route: Route, since: Instant, predicted: Duration) -> Arc<Self> {
        Arc::new(Self {
            route,
            since,
            predicted,
            turn: Mutex::new(Turn::ToCome(None)),
        })
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(*self.turn(), Turn::Over)
    }

    /// Its turn has come; whom to wake.
    ///
    /// # Errors
    ///
    /// What was given, if nobody waits any more.
    pub(super) fn call(&self, given: Given) -> Result<Option<Waker>, Given> {
        let mut turn = self.turn();
        let Turn::ToCome(waker) = &mut *turn else {
            return Err(given);
        };
        let waker = waker.take();
        *turn = Turn::Come(given);
        Ok(waker)
    }

    /// Its turn came too late; whom to wake.
    pub(super) fn refuse(&self, rejected: Rejected) -> Option<Waker> {
        let mut turn = self.turn();
        let Turn::ToCome(waker) = &mut *turn else {
            return None;
        };
        let waker = waker.take();
        *turn = Turn::TooLate(rejected);
        waker
    }

    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Those whose turn has come, to be woken when no lock is held.
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

/// A place in the queue; a future of its turn. Dropped, it gives back what it was given.
#[derive(Debug)]
pub(crate) struct Ticket {
    pool: Arc<Pool>,
    waiter: Arc<Waiter>,
}

impl Ticket {
    pub(super) fn new(pool: Arc<Pool>, waiter: Arc<Waiter>) -> Self {
        Self { pool, waiter }
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
        match std::mem::replace(&mut *turn, Turn::Over) {
            Turn::Come(given) => Poll::Ready(Ok(Run::new(Arc::clone(&self.pool), given))),
            Turn::TooLate(rejected) => Poll::Ready(Err(rejected)),
            Turn::ToCome(_) | Turn::Over => unreachable!("a ticket is polled to its end once"),
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let turn = std::mem::replace(&mut *self.waiter.turn(), Turn::Over);
        if let Turn::Come(given) = turn {
            drop(Run::new(Arc::clone(&self.pool), given));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::Worker;

    #[test]
    fn who_left_just_before_its_turn_hands_back_what_it_is_given() {
        let waiter = Waiter::new(Route::default(), Instant::now(), Duration::ZERO);
        *waiter.turn() = Turn::Over;
        let process = rustix::process::getpid();
        let worker = Worker::new(7, process, std::path::PathBuf::new(), false);
        let given = Given {
            route: Route::default(),
            worker,
            behind: None,
        };
        let handed_back = waiter.call(given).expect_err("nobody waits");
        assert_eq!(handed_back.worker.key, 7);
    }
}
