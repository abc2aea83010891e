use std::sync::Arc;
use std::time::{Duration, Instant};

use greenroom_stage::Client;
use greenroom_stage::fair::Flow;

use super::routes::Route;
use super::{Pool, Settlement, Worker};

/// Where a request comes from, and where it wants to go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) route: Route,
    pub(crate) client: Client,
}

/// What a run is expected to use, charged to its flow before it begins: else all workers would be one
/// client's before the first of its runs has ended. It is corrected when the run is given back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Charge {
    pub(super) route: Route,
    /// As of when the request came: a route has an account of its own once a run of it has ended.
    pub(super) flow: Flow,
    pub(super) expected: Duration,
    pub(super) since: Instant,
}

/// How a run was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunEnd {
    /// By its worker, which it kept busy for so long.
    Released(Duration),
    /// Unsent, or struck out before it began.
    Unused,
    /// Nobody will hear of it any more, because its link is gone.
    Lost {
        /// As far as is known.
        has_begun: bool,
    },
}

/// What the pool gives a request.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) charge: Charge,
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

    pub(crate) fn charge(&self) -> Charge {
        self.given.charge
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
            self.pool
                .give_back(self.given.worker.key, self.given.charge);
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
