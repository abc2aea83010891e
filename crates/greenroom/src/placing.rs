use std::any::Any;
use std::mem;

use axum::Router;
use greenroom_stage::Placement;

/// Gives a `Router` the placement [`auto`](Placement::auto), route by route. Any other application
/// is left as it is: only a router tells one route from another, and is known to hold nothing that
/// may not leave its thread.
pub(crate) fn place<A: 'static>(mut app: A) -> A {
    if let Some(router) = (&mut app as &mut dyn Any).downcast_mut::<Router>() {
        // With its state given, the router is finished once, and not again for each connection.
        *router = mem::take(router).layer(Placement::auto()).with_state(());
    }
    app
}
