use std::any::Any;

use axum::Router;

use super::patterns::Patterns;
use super::segments::Segments;

/// The path names by which the routes of a service are told apart that is placed from around it.
#[derive(Debug)]
pub(super) enum Paths {
    /// For a service whose routes are known.
    Patterns(Patterns),
    /// For any other service.
    Segments(Segments),
}

impl Paths {
    pub(super) fn of<S: 'static>(service: &S) -> Self {
        match (service as &dyn Any).downcast_ref::<Router>() {
            Some(router) => Self::Patterns(Patterns::of_router_in(router)),
            None => Self::Segments(Segments::default()),
        }
    }

    /// Returns the path name of a request's route.
    pub(super) fn name(&self, path: &str) -> &str {
        match self {
            Self::Patterns(patterns) => patterns.name(path),
            Self::Segments(segments) => segments.name(path),
        }
    }
}
