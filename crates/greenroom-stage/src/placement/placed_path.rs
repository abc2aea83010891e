use std::sync::atomic::{AtomicU32, Ordering};

use greenroom_timing::interned;
use http::Method;

use super::route::{METHODS, RouteAt, Routes, number_of};

/// The path of a placement's routes, for [`PlacedService::call_at`](super::PlacedService::call_at).
///
/// It remembers the position of the route of each method, so that only the first request has to
/// look for it. Used with several placements, it looks for them each time it comes to another.
///
/// There should be few paths: each is kept for the life of the process.
#[derive(Debug)]
pub struct PlacedPath {
    path: &'static str,
    /// Positions by the number of the method, as [`RouteAt::packed`] makes them; 0 if unknown.
    positions: [AtomicU32; METHODS.len()],
}

impl PlacedPath {
    /// Creates a path. The empty one is that of requests that no router has matched.
    #[must_use]
    pub fn new(path: &str) -> Self {
        Self {
            path: interned(path),
            positions: Default::default(),
        }
    }

    /// The path itself.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        self.path
    }

    pub(super) fn find(&self, routes: &Routes, method: &Method) -> RouteAt {
        let method = number_of(method);
        let position = &self.positions[method];
        // Relaxed, as what is found there is looked at: it may be seen before the route, or be that
        // of another placement.
        let remembered = RouteAt::unpacked(position.load(Ordering::Relaxed));
        if let Some(at) = remembered.filter(|at| routes.has(*at, method, self.path)) {
            return at;
        }
        let at = routes.find_numbered(method, self.path);
        position.store(at.packed(), Ordering::Relaxed);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::rule::Rule;

    #[test]
    fn a_path_finds_its_routes_in_every_placement() {
        let tables = [(); 2].map(|()| Routes::new(None, true, Rule::default()));
        // Another order, and so other places in chains of two.
        for number in 0..1_000 {
            tables[1].find(&Method::GET, &format!("/{number}"));
        }
        let paths: Vec<_> = (0..100)
            .map(|number| PlacedPath::new(&format!("/{number}")))
            .collect();
        for _ in 0..3 {
            for path in &paths {
                for routes in &tables {
                    for method in [Method::GET, Method::POST, Method::GET] {
                        let at = path.find(routes, &method);
                        let route = routes.at(at);
                        assert_eq!((route.method(), route.path()), (method.as_str(), path.path));
                        assert_eq!(at, routes.find(&method, path.path));
                    }
                }
            }
        }
    }
}
