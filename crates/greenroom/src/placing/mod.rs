//! Placement of the handlers of an application: route by route, as far as routes can be told apart.

mod paths;
mod patterns;
mod routed;
mod segments;

pub(crate) use routed::{AsItIs, ByRoute, Placed, Routed};

use std::any::Any;
use std::fmt;
use std::mem;

use axum::Router;
use greenroom_stage::Placement;

use paths::Paths;
use patterns::Patterns;

/// Places a service by its routes, from around it: what a `Router` puts inside of each route costs
/// its requests two allocations.
pub(crate) fn place<S: Clone + 'static>(mut service: S) -> Routed<S> {
    if let Some(router) = (&mut service as &mut dyn Any).downcast_mut::<Router>() {
        // With its state given, the router is finished once, and not again for each request.
        *router = mem::take(router).with_state(());
    }
    by_route().place(service)
}

/// Places services that are made for each connection, by the routes of the first one.
pub(crate) fn by_route() -> ByRoute {
    ByRoute::new(Placement::auto(), None)
}

/// Places services that are made for each connection. If `R` makes them, which has a `Router`
/// inside, by the routes of that router.
pub(crate) fn by_route_of<R: fmt::Debug + 'static>(make: &dyn Any) -> ByRoute {
    let patterns = make.downcast_ref::<R>().map(Patterns::of_router_in);
    ByRoute::new(Placement::auto(), patterns.map(Paths::Patterns))
}

/// Warns at the start of a server that it cannot place this application.
pub(crate) fn warn_unplaced(application: &str) {
    tracing::warn!(
        application,
        "the application stays on the loops: a handler that computes or blocks holds up everybody \
         on its loop; serve a router or a service that is `Send`, or place what it runs by \
         `greenroom::Stage`"
    );
}
