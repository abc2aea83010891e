use std::any::Any;

use axum::Router;

use super::patterns::Patterns;
use super::segments::Segments;

/// What tells the routes of a service apart that is placed from around it.
#[derive(Debug)]
pub(super) enum Paths {
    /// Its routes are known.
    Patterns(Patterns),
    /// Nothing is known of it.
    Segments(Segments),
}

impl Paths {
    pub(super) fn of<S: 'static>(service: &S) -> Self {
        match (service as &dyn Any).downcast_ref::<Router>() {
            Some(router) => Self::Patterns(Patterns::of_router_in(router)),
            None => Self::Segments(Segments::default()),
        }
    }

    /// The path by which the route of a request is known.
    pub(super) fn name(&self, path: &str) -> &str {
        match self {
            Self::Patterns(patterns) => patterns.name(path),
            Self::Segments(segments) => segments.name(path),
        }
    }
}
