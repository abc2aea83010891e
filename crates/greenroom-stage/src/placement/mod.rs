//! Placement of routes: on the loop, on a stage, or moved between them by their measured poll time.

mod body;
mod hand_over;
pub(crate) mod lease;
mod measured;
mod moves;
mod origin;
pub(crate) mod outer;
mod parts;
mod placed_path;
mod poll_times;
pub(crate) mod route;
mod rule;
mod service;
mod status;
mod stopwatch;

pub use hand_over::before_stages;
pub use moves::{MOVES_SHOWN, MoveReason, MoveStatus};
pub use placed_path::PlacedPath;
pub use route::WORTH_SHEDDING;
pub use rule::{
    LONG_RUN, Move, PROVEN_RUNS, Rule, SHORT_RUN, STREAK_FIRST, STREAK_LIKELY, STREAK_MAX,
};
pub use service::{PlacedFuture, PlacedService};
pub use status::{Placed, RouteStatus};

use std::sync::Arc;
use std::time::Duration;

use tower_layer::Layer;

use crate::client::ClientKey;
use crate::stage::{Priority, Stage};
use lease::Lease;
use route::Routes;

/// A layer that decides where the service behind it runs.
///
/// ```
/// use axum::{Router, routing::get};
/// use greenroom_stage::{Priority, Placement, Stage};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let reports = Stage::builder("reports").threads(1..=1).build()?;
/// let app: Router = Router::new()
///     .route("/report", get(|| async { "…" }))
///     .route_layer(Placement::on(&reports))
///     .merge(
///         Router::new()
///             .route("/hello", get(|| async { "Hello, world!" }))
///             .route("/fib/{n}", get(|| async { "…" }))
///             .layer(Placement::auto()),
///     )
///     .merge(
///         Router::new()
///             .route("/health", get(|| async { "fine" }))
///             .layer(Placement::auto().priority(Priority::Critical)),
///     );
/// # Ok(())
/// # }
/// ```
///
/// Each method of each matched path is a route of its own; requests that no path matches, and any
/// service outside of axum's router, are one route for each method, and may be given a
/// [key](Self::key).
///
/// Make placements where the router is built, not for each connection or request: a route is some
/// kilobytes, and what it has proven goes with its placement. A placement lives as long as a clone
/// of it, a service behind it or a request under way, and until the loops end that have used it.
///
/// Of two placements around the same handler the inner one decides, and the outer one stays out of
/// its way. So a router behind `greenroom::serve`, which places every route that has no placement,
/// may have placements of its own. But what is given to a stage by [`on`](Self::on) stays there,
/// with that placement's priority: an inner one decides only where it goes from there.
///
/// The body of a response counts as its handler's work, unless it is whole in memory: it is polled
/// where its route runs, goes to the stage if it computes, and to the loop if it merely waits.
#[derive(Clone, Debug)]
pub struct Placement {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    settings: Settings,
    routes: Routes,
}

#[derive(Clone, Debug)]
struct Settings {
    stage: Option<Stage>,
    priority: Priority,
    key: Option<&'static str>,
    client_key: Option<ClientKey>,
    is_auto: bool,
    short_run: Duration,
}

impl Placement {
    /// Creates a placement that is safe first and fast when proven: a route begins on
    /// [`Stage::global`] and moves inline and back by the [`Rule`].
    ///
    /// # Panics
    ///
    /// If the global stage does not exist yet and the system has no threads to give.
    #[must_use]
    pub fn auto() -> Self {
        Self::auto_on(Stage::global())
    }

    /// Like [`auto`](Self::auto), with a stage of your own.
    #[must_use]
    pub fn auto_on(stage: &Stage) -> Self {
        Self::placed(Some(stage.clone()), true)
    }

    /// Creates a placement on the loop, always; but behind another placement, that of
    /// `greenroom::serve` included, the first request runs where that one decides, and behind
    /// [`on`](Self::on) all of them. For handlers that only wait, or do microseconds of work. The
    /// watchdog still reports those that hold up the loop.
    #[must_use]
    pub fn inline() -> Self {
        Self::placed(None, false)
    }

    /// Creates a placement on this stage, always.
    #[must_use]
    pub fn on(stage: &Stage) -> Self {
        Self::placed(Some(stage.clone()), false)
    }

    /// Sets which requests are rejected first: see [`Priority`]. An inline route's requests are
    /// rejected only while its loop is behind: see [`shed_on_this_loop`](crate::shed_on_this_loop).
    /// The result is a placement of its own, with its own routes.
    #[must_use]
    pub fn priority(self, priority: Priority) -> Self {
        Self::new(Settings {
            priority,
            ..self.shared.settings.clone()
        })
    }

    /// Sets the name in status, log and metrics of requests that no router has matched, in place of
    /// a path. For services outside of axum's router. The result is a placement of its own.
    ///
    /// ```
    /// use greenroom_stage::Placement;
    ///
    /// let placement = Placement::auto().key("proxy");
    /// ```
    #[must_use]
    pub fn key(self, key: &'static str) -> Self {
        Self::new(Settings {
            key: Some(key),
            ..self.shared.settings.clone()
        })
    }

    /// Sets the function that finds the client of a request, where its address is not enough: see
    /// [`ClientKey`]. The result is a placement of its own.
    #[must_use]
    pub fn client_key(self, client_key: ClientKey) -> Self {
        Self::new(Settings {
            client_key: Some(client_key),
            ..self.shared.settings.clone()
        })
    }

    /// Sets the mean poll time that is short enough for the loop, in place of [`SHORT_RUN`] (250
    /// us). Four times this is long, and sends a route back, and likewise the body of a response to
    /// the stage. It is the time for which a route may hold up its neighbours; a slow machine may
    /// need more, a debug build too. Stalls, which the watchdog sees, send a route back for any
    /// value.
    ///
    /// A test that sets an hour sees its routes inline after 64 requests, however busy its machine.
    /// The result is a placement of its own.
    ///
    /// ```
    /// use std::time::Duration;
    /// use greenroom_stage::Placement;
    ///
    /// let placement = Placement::auto().short_run(Duration::from_micros(500)); // long: over 2 ms
    /// ```
    #[must_use]
    pub fn short_run(self, short_run: Duration) -> Self {
        Self::new(Settings {
            short_run,
            ..self.shared.settings.clone()
        })
    }

    fn placed(stage: Option<Stage>, is_auto: bool) -> Self {
        Self::new(Settings {
            stage,
            priority: Priority::Normal,
            key: None,
            client_key: None,
            is_auto,
            short_run: SHORT_RUN,
        })
    }

    fn new(settings: Settings) -> Self {
        let shared = Shared {
            routes: Routes::new(
                settings.stage.clone(),
                !settings.is_auto,
                Rule::with_short_run(settings.short_run),
            ),
            settings,
        };
        Self {
            shared: Arc::new(shared),
        }
    }
}

impl<S> Layer<S> for Placement {
    type Service = PlacedService<S>;

    fn layer(&self, inner: S) -> PlacedService<S> {
        PlacedService::new(inner, Lease::new(&self.shared))
    }
}
