use serde::Serialize;

use crate::placement::RouteStatus;
use crate::placement::route::lock_routes;
use crate::registry;
use crate::stage::StageStatus;

/// All stages and placed routes of the process at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The stages, the oldest first.
    pub stages: Vec<StageStatus>,
    /// The routes behind a placement that have had a request, in the order of their first. Of two
    /// placements around a handler only the inner one is listed.
    pub routes: Vec<RouteStatus>,
}

/// Returns the state of all stages and placed routes of the process. Takes each lock for a moment
/// only.
#[must_use]
pub fn status() -> Status {
    let mut routes = lock_routes().clone();
    routes.retain(|route| !route.is_passed_through());
    Status {
        stages: registry::stages()
            .iter()
            .map(|stage| stage.status())
            .collect(),
        routes: routes.iter().map(|route| route.status()).collect(),
    }
}
