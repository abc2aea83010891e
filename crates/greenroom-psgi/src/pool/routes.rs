use std::hash::{Hash, Hasher};
use std::time::Duration;

use greenroom_stage::STALL;
use greenroom_stage::placement::{LONG_RUN, Rule, STREAK_FIRST};
use http::Method;
use rustc_hash::{FxHashMap, FxHasher};

/// How many routes are told apart. Those beyond share one rule.
const ROUTES_MAX: usize = 1_024;

/// How many segments of its path make a request's route: `/shop/cart/7` is of `/shop/cart`. Perl's
/// frameworks keep their routes to themselves.
const SEGMENTS: usize = 2;

/// What requests are likely to have in common: their method and the beginning of their path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Route(u64);

impl Route {
    pub(crate) fn of(method: &Method, path: &str) -> Self {
        let mut slashes = memchr::memchr_iter(b'/', path.as_bytes());
        let end = slashes.nth(SEGMENTS).unwrap_or(path.len());
        let mut hasher = FxHasher::default();
        (method, &path[..end]).hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// Which routes have proven short. Only their runs are sent ahead, behind others.
#[derive(Debug, Default)]
pub(super) struct Routes(FxHashMap<Route, Rule>);

impl Routes {
    pub(super) fn is_short(&self, route: Route) -> bool {
        let rest = || self.0.get(&Route::default()).filter(|_| self.is_full());
        let rule = self.0.get(&route).or_else(rest);
        rule.is_some_and(Rule::is_inline)
    }

    /// How many routes have proven short.
    pub(super) fn short(&self) -> usize {
        self.0.values().filter(|rule| rule.is_inline()).count()
    }

    /// A run is measured by the wall, so one during which others had the processor looks long. Only
    /// what a watchdog would call a stall counts as long.
    pub(super) fn record(&mut self, route: Route, busy: Duration) {
        let judged = if busy > STALL {
            busy
        } else {
            busy.min(LONG_RUN)
        };
        let route = self.known(route);
        self.0.entry(route).or_default().record(judged);
    }

    /// Those that are merely new make room for others.
    fn known(&mut self, route: Route) -> Route {
        if self.is_full() && !self.0.contains_key(&route) {
            self.0
                .retain(|_, rule| rule.is_inline() || rule.needed() > STREAK_FIRST);
            if self.is_full() {
                return Route::default();
            }
        }
        route
    }

    fn is_full(&self) -> bool {
        self.0.len() >= ROUTES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_micros(20);

    fn route(path: &str) -> Route {
        Route::of(&Method::GET, path)
    }

    fn prove(routes: &mut Routes, route: Route) {
        for _ in 0..STREAK_FIRST {
            routes.record(route, SHORT);
        }
    }

    #[test]
    fn two_segments_and_the_method_make_a_route() {
        assert_eq!(route("/shop/cart/7"), route("/shop/cart"));
        assert_ne!(route("/shop/cart"), route("/shop/hat"));
        assert_ne!(route("/shop"), Route::of(&Method::POST, "/shop"));
        assert_eq!(route("/"), route("/"));
    }

    #[test]
    fn a_route_proves_itself_alone() {
        let mut routes = Routes::default();
        prove(&mut routes, route("/short"));
        assert!(routes.is_short(route("/short")) && !routes.is_short(route("/other")));
        routes.record(route("/short"), 2 * STALL);
        assert!(!routes.is_short(route("/short")));
    }

    #[test]
    fn a_run_that_was_merely_interrupted_is_not_long() {
        let mut routes = Routes::default();
        prove(&mut routes, route("/short"));
        routes.record(route("/short"), STALL / 2);
        assert!(routes.is_short(route("/short")));
    }

    #[test]
    fn invented_paths_do_not_drive_out_what_is_proven() {
        let mut routes = Routes::default();
        prove(&mut routes, route("/short"));
        for number in 0..10 * ROUTES_MAX {
            routes.record(route(&format!("/{number}")), SHORT);
        }
        assert!(routes.0.len() <= ROUTES_MAX + 1);
        assert!(routes.is_short(route("/short")));
    }
}
