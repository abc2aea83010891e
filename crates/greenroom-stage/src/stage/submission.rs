use std::time::Duration;

use super::lanes::Band;
use super::priority::{Priority, Rank};
use crate::client::Client;
use crate::fair::Flow;
use crate::placement::outer;
use crate::placement::route::Route;

/// The description of work that is submitted to a stage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Submission {
    pub(crate) rank: Rank,
    pub(crate) is_likely_short: bool,
    pub(crate) client: Client,
    pub(crate) route: RouteName,
    /// The time that its caller states for it, if known.
    pub(crate) stated: Option<Duration>,
}

/// The identity of a route, which tells its work from that of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RouteName {
    pub(crate) key: u64,
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
}

impl Submission {
    /// Describes work of unknown length, for the request for which this thread works.
    pub(crate) fn of_caller(priority: Priority) -> Self {
        Self {
            rank: Rank::of(priority),
            is_likely_short: false,
            client: Client::current(),
            route: outer::with_current(Route::name).unwrap_or_default(),
            stated: None,
        }
    }

    pub(crate) fn band(&self) -> Band {
        self.rank.band(self.is_likely_short)
    }

    pub(crate) fn flow(&self) -> Flow {
        Flow {
            route: self.route.key,
            client: self.client.key(),
        }
    }
}
