use std::time::Duration;

use super::importance::Importance;
use super::lanes::Band;
use crate::client::Client;
use crate::fair::Flow;
use crate::placement::outer;
use crate::placement::route::Route;

/// What a stage is told of work besides the work itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Submission {
    pub(crate) importance: Importance,
    pub(crate) is_likely_short: bool,
    pub(crate) client: Client,
    pub(crate) route: RouteName,
    /// What its caller says that it will take, if they know.
    pub(crate) stated: Option<Duration>,
}

/// What tells work of one kind from that of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RouteName {
    pub(crate) key: u64,
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
}

impl Submission {
    /// Work of which nothing is known but who asks for it: the request for which this thread works.
    pub(crate) fn of_caller(importance: Importance) -> Self {
        Self {
            importance,
            is_likely_short: false,
            client: Client::current(),
            route: outer::current().map(Route::name).unwrap_or_default(),
            stated: None,
        }
    }

    pub(crate) fn band(&self) -> Band {
        self.importance.band(self.is_likely_short)
    }

    pub(crate) fn flow(&self) -> Flow {
        Flow {
            route: self.route.key,
            client: self.client.key(),
        }
    }
}
