use std::time::Duration;

use super::Settings;
use super::route::Route;
use crate::client::Client;
use crate::stage::{Importance, Stage, Submission};

/// Where a request's run began, and for whom: what the body of its response is placed by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub(super) route: &'static Route,
    pub(super) settings: &'static Settings,
    pub(super) importance: Importance,
    pub(super) client: Client,
    pub(super) is_inline: bool,
}

impl Origin {
    /// `None` for what is inline always.
    pub(super) fn stage(&self) -> Option<&'static Stage> {
        self.settings.stage.as_ref()
    }

    pub(super) fn submission(&self) -> Submission {
        Submission {
            importance: self.importance,
            is_likely_short: self.route.is_likely_short(),
            client: self.client,
            route: self.route.name(),
            stated: None,
        }
    }

    /// Counts a run that was busy for so long, where the route ran when it began.
    pub(super) fn record(&self, busy: Duration) {
        if self.is_inline {
            self.route.record_inline(busy);
        } else {
            self.route.record_staged(busy);
        }
    }
}
