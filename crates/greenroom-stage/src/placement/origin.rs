use std::time::Duration;

use super::lease::Lease;
use super::route::{Route, RouteAt};
use crate::client::Client;
use crate::stage::{Rank, Stage, Submission};

/// The origin of a request's run: its route, settings and client, by which the body of its response
/// is placed.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) placement: Lease,
    pub(super) at: RouteAt,
    pub(super) rank: Rank,
    pub(super) client: Client,
    pub(super) is_inline: bool,
}

impl Origin {
    pub(super) fn route(&self) -> &Route {
        self.placement.routes.at(self.at)
    }

    /// `None` for a route that is always inline.
    pub(super) fn stage(&self) -> Option<&Stage> {
        self.placement.settings.stage.as_ref()
    }

    /// The poll time up to which runs are short.
    pub(super) fn short_run(&self) -> Duration {
        self.placement.settings.short_run
    }

    pub(super) fn submission(&self) -> Submission {
        Submission {
            rank: self.rank,
            is_likely_short: self.route().is_likely_short(),
            client: self.client,
            route: self.route().name(),
            stated: None,
        }
    }

    /// Returns the origin of a response's body, which may come for long: whatever its request was
    /// admitted as, it has the priority of its placement.
    pub(super) fn of_body(&self) -> Self {
        Self {
            rank: Rank {
                priority: self.placement.settings.priority,
                ..self.rank
            },
            ..self.clone()
        }
    }

    /// Counts a run that took `poll_time`, where the route ran when it began.
    pub(super) fn record(&self, poll_time: Duration) {
        if self.is_inline {
            self.route().record_inline(poll_time);
        } else {
            self.route().record_staged(poll_time);
        }
    }
}
