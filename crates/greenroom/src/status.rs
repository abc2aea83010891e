use axum::Json;
use greenroom_actor::ActorSystemStatus;
use greenroom_server::LoopStatus;
use greenroom_stage::{RouteStatus, StageStatus};
use serde::Serialize;

/// Loops, stages, routes, actors and PSGI applications of the process at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The loops that serve, in the order in which they began.
    pub loops: Vec<LoopStatus>,
    /// The stages, the oldest first.
    pub stages: Vec<StageStatus>,
    /// The placed routes that have had a request, in the order of their first.
    pub routes: Vec<RouteStatus>,
    /// The actor systems, the oldest first.
    pub actors: Vec<ActorSystemStatus>,
    /// The PSGI applications, the oldest first. Only with the feature `psgi`.
    #[cfg(feature = "psgi")]
    pub psgi: Vec<greenroom_psgi::GatewayStatus>,
}

/// Returns the state of all loops, stages, routes, actors and PSGI applications of the process.
/// Takes each lock for a moment only.
#[must_use]
pub fn status() -> Status {
    let greenroom_stage::Status { stages, routes } = greenroom_stage::status();
    Status {
        loops: greenroom_server::loops(),
        stages,
        routes,
        actors: greenroom_actor::status(),
        #[cfg(feature = "psgi")]
        psgi: greenroom_psgi::status(),
    }
}

/// A handler that responds with [`status`] as JSON, to be mounted where only operators come: it
/// names all routes and their load.
///
/// ```
/// use axum::{Router, routing::get};
/// use greenroom::{Priority, Placement};
///
/// let operators: Router = Router::new()
///     .route("/greenroom/status", get(greenroom::status_handler))
///     .layer(Placement::auto().priority(Priority::Critical)); // seen under overload too
/// ```
pub async fn status_handler() -> Json<Status> {
    Json(status())
}
