use std::any::Any;

use axum::Router;
use greenroom_stage::placement::PlacedPath;

use super::patterns::Patterns;
use super::segments::Segments;

/// The paths by which the routes of a service are told apart that is placed from around it.
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
            Some(router) => {
                let patterns = Patterns::of_router_in(router);
                if router.has_routes() && patterns.is_empty() {
                    tracing::warn!("this version of axum does not show the routes of a router");
                }
                Self::Patterns(patterns)
            }
            None => Self::Segments(Segments::default()),
        }
    }

    /// Returns the path of a request's route.
    pub(super) fn route(&self, path: &str) -> &PlacedPath {
        match self {
            Self::Patterns(patterns) => patterns.route(path),
            Self::Segments(segments) => segments.route(path),
        }
    }
}
