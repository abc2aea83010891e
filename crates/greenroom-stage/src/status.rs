use std::sync::Arc;

use serde::Serialize;

use crate::placement::RouteStatus;
use crate::placement::route::{Route, routes};
use crate::scope::StatusScope;
use crate::stage::shared::Shared;
use crate::stage::{STAGES, StageStatus};

/// The stages and placed routes of a process, or of a [`StatusScope`], at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The stages, the oldest first.
    pub stages: Vec<StageStatus>,
    /// The routes behind a placement that have had a request, in the order of their first. Of two
    /// placements around a handler only the inner one is listed.
    pub routes: Vec<RouteStatus>,
}

/// Returns the state of all stages and placed routes of the process: for programs that have one
/// server, or none of their own. Takes each lock for a moment only.
#[must_use]
pub fn status() -> Status {
    Status::of(&STAGES.all(), |_| true)
}

impl StatusScope {
    /// Returns the state of the stages and placed routes of this scope, and of those that belong to
    /// no scope. Takes each lock for a moment only.
    #[must_use]
    pub fn status(&self) -> Status {
        Status::of(&STAGES.within(self), |route| route.is_shown_in(self))
    }
}

impl Status {
    fn of(stages: &[Arc<Shared>], is_shown: impl Fn(&Route) -> bool) -> Self {
        let mut routes = routes();
        routes.retain(|route| is_shown(route) && !route.is_passed_through());
        Self {
            stages: stages.iter().map(|stage| stage.status()).collect(),
            routes: routes.iter().map(|route| route.status()).collect(),
        }
    }
}
