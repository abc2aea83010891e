//! The permits of a pool, which are released as they are dropped.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use greenroom_stage::Rejected;
use tokio::time::timeout;

use super::Pool;
use super::charge::{Charge, Given};
use super::phase::{Phase, Settlement};
use super::queue::{Turn, Waiter};
use super::worker::Worker;

/// The permit to send one request to a worker. Dropping it releases it; once it is sent, the link
/// settles it.
#[derive(Debug)]
pub(crate) struct Run {
    pool: Arc<Pool>,
    given: Given,
    is_sent: bool,
}

impl Run {
    pub(super) fn new(pool: Arc<Pool>, given: Given) -> Self {
        Self {
            pool,
            given,
            is_sent: false,
        }
    }

    /// Returns the runs that the worker had released when this one was given, if it had others to
    /// do then. While that number stays the same, the worker has not come to this one.
    pub(crate) fn behind(&self) -> Option<u64> {
        self.given.behind
    }

    pub(crate) fn charge(&self) -> Charge {
        self.given.charge
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    pub(crate) fn worker(&self) -> &Arc<Worker> {
        &self.given.worker
    }

    /// Marks the request as sent; from now on the link settles the run.
    pub(crate) fn sent(mut self) {
        self.is_sent = true;
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.is_sent {
            self.pool
                .give_back(self.given.worker.key, self.given.charge);
        }
    }
}

/// A connection that leaves HTTP, or has left it, and keeps its worker from ending.
#[derive(Debug)]
pub(crate) struct Stay {
    pool: Arc<Pool>,
    key: u32,
}

impl Stay {
    pub(super) fn new(pool: Arc<Pool>, key: u32) -> Self {
        Self { pool, key }
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        let (mut settlement, mut phase) = (Settlement::default(), Phase::Waiting);
        settlement.change(&mut phase, Phase::Dropped);
        self.pool.settle(self.key, &mut settlement);
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
        let mut turn = self.waiter.turn.lock();
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
