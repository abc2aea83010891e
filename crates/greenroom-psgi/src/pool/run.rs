use std::sync::Arc;
use std::time::{Duration, Instant};

use greenroom_stage::Client;
use greenroom_stage::fair::Flow;

use super::routes::Route;
use super::{Phase, Pool, Settlement, Worker};

/// The origin of a request and its destination: its client and its route.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) route: Route,
    pub(crate) client: Client,
}

/// The time that a run is expected to use, charged to its flow before it begins: else one client
/// would get all workers before the first of its runs has ended. The charge is corrected when the
/// run is released.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Charge {
    pub(super) route: Route,
    /// The flow when the request came: a route has an account of its own once a run of it has
    /// ended.
    pub(super) flow: Flow,
    pub(super) expected: Duration,
    pub(super) since: Instant,
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunEnd {
    /// Released by its worker, after this much run time.
    Released(Duration),
    /// Never sent, or recalled before it began.
    Unused,
    /// Its link is gone, so its worker cannot release it any more.
    Lost {
        /// True if it was begun, as far as is known.
        has_begun: bool,
    },
}

/// A run that the pool gives a request.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) charge: Charge,
    pub(super) worker: Arc<Worker>,
    /// See [`Run::behind`].
    pub(super) behind: Option<u64>,
}

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
        let (mut settlement, mut phase) = (Settlement::default(), Phase::Waiting);
        settlement.change(&mut phase, Phase::Dropped);
        self.pool.settle(self.key, &mut settlement);
    }
}
