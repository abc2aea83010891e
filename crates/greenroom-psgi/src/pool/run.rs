use std::sync::Arc;

use super::routes::Route;
use super::{Pool, Settlement, Worker};

/// What the pool gives a newcomer.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) route: Route,
    pub(super) worker: Arc<Worker>,
    /// See [`Run::behind`].
    pub(super) behind: Option<u64>,
}

/// The right to send a worker one request. Dropped, it is given back; sent, it is the link's to
/// settle.
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

    /// How many runs the worker had given back when this one was given, if it had others to do
    /// then. While it gives back no more, it has not come to this one.
    pub(crate) fn behind(&self) -> Option<u64> {
        self.given.behind
    }

    pub(crate) fn route(&self) -> Route {
        self.given.route
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    pub(crate) fn worker(&self) -> &Arc<Worker> {
        &self.given.worker
    }

    /// The request is on its way.
    pub(crate) fn sent(mut self) {
        self.is_sent = true;
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.is_sent {
            self.pool.give_back(self.given.worker.key);
        }
    }
}

/// A connection that has left HTTP, and still has its worker.
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
        let mut settlement = Settlement {
            stays_ended: 1,
            ..Settlement::default()
        };
        self.pool.settle(self.key, &mut settlement);
    }
}
