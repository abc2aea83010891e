use std::sync::Arc;
use std::time::{Duration, Instant};

use greenroom_stage::Client;
use greenroom_stage::fair::Flow;

use super::routes::Route;
use super::worker::Worker;

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
    /// See [`Run::behind`](super::Run::behind).
    pub(super) behind: Option<u64>,
}
