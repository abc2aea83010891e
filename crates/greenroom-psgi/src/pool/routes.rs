use std::hash::{Hash, Hasher};
use std::time::Duration;

use greenroom_stage::admission::ServiceTime;
use greenroom_stage::placement::{Rule, STREAK_FIRST};
use http::Method;
use rustc_hash::{FxHashMap, FxHasher};

/// The number of routes that are told apart. Those beyond share one rule.
const ROUTES_MAX: usize = 1_024;

/// The number of a path's segments that make a request's route: `/shop/cart/7` is of `/shop/cart`.
/// Perl's frameworks do not expose their routes.
const SEGMENTS: usize = 2;

/// The factor by which a run may be longer in a worker than on a loop: short up to 2.5 ms in the
/// mean, long beyond 10 ms.
const LENIENCY: u32 = 10;

/// A key of requests that are likely to take equally long: their method and the beginning of their
/// path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Route(u64);

impl Route {
    /// The route of requests that ask to leave HTTP. They may last as long as their clients stay,
    /// so no request waits behind one, and their times are not learnt from.
    pub(crate) const LEAVING: Self = Self(u64::MAX);

    /// The account of requests to leave HTTP: not a hash's highest value, which
    /// [`Usage`](greenroom_stage::fair::Usage) keeps for itself.
    const LEAVING_ACCOUNT: u64 = u64::MAX - 1;

    pub(crate) fn of(method: &Method, path: &str) -> Self {
        let mut slashes = memchr::memchr_iter(b'/', path.as_bytes());
        let end = slashes.nth(SEGMENTS).unwrap_or(path.len());
        let mut hasher = FxHasher::default();
        (method, &path[..end]).hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// The time that the runs sent ahead may keep the last of them waiting: 6.4 ms, in which
/// [`DEPTH_MAX`] runs of 100 us end.
const AHEAD_MAX: Duration = Duration::from_micros(6_400);

/// The most runs that a worker is sent ahead.
pub(super) const DEPTH_MAX: u32 = 64;

/// The runs of a route without records that an event-driven worker is sent ahead.
pub(super) const EVENT_DEPTH: u32 = 8;

/// The records of each route: its rule, which says if it has proven short, and the poll time of its
/// runs.
#[derive(Debug, Default)]
pub(super) struct Routes(FxHashMap<Route, Known>);

#[derive(Debug, Default)]
struct Known {
    rule: Rule,
    busy: ServiceTime,
}

impl Known {
    /// Returns the number of runs that keep the last of them waiting for no longer than is allowed.
    fn depth(&self) -> u32 {
        let busy = self.busy.mean().as_nanos().max(1);
        let depth = u32::try_from(AHEAD_MAX.as_nanos() / busy).unwrap_or(u32::MAX);
        depth.clamp(1, DEPTH_MAX)
    }
}

impl Routes {
    /// Returns the number of runs that a worker may have at once with one of this route as the
    /// last; 1 if none is sent behind another. In a worker that an event loop drives a new route is
    /// expected to be short, because a long run would block all other requests there anyway.
    pub(super) fn depth(&self, route: Route, is_event_driven: bool) -> u32 {
        if route == Route::LEAVING {
            return 1;
        }
        let rest = || self.0.get(&Route::default()).filter(|_| self.is_full());
        let known = self.0.get(&route).or_else(rest);
        match known {
            Some(known) if known.rule.is_inline() => known.depth(),
            Some(known) if known.rule.needed() > STREAK_FIRST => 1,
            _ if is_event_driven => EVENT_DEPTH,
            _ => 1,
        }
    }

    /// Returns the account to which a request of this route is charged. A route of which no run has
    /// ended yet shares an account with all others of its kind: else each path that a client
    /// invents were a route that has used nothing, and one more to look at whenever a worker is
    /// free.
    pub(super) fn account(&self, route: Route) -> u64 {
        match route {
            Route::LEAVING => Route::LEAVING_ACCOUNT,
            Route(hash) if self.0.contains_key(&route) => hash,
            _ => Route::default().0,
        }
    }

    /// Returns the number of routes that have proven short.
    pub(super) fn short(&self) -> usize {
        let short = self.0.values().filter(|known| known.rule.is_inline());
        short.count()
    }

    /// Records a run and returns the account that has learnt from it. The rule is that of routes on
    /// a loop, with bounds ten times as high: a worker is not a loop, and a run is measured in
    /// wall-clock time, so that one during which other processes had the processor looks long. A
    /// route that is proven is forgiven one such run.
    pub(super) fn record(&mut self, route: Route, busy: Duration) -> Option<u64> {
        if route == Route::LEAVING {
            return None;
        }
        let route = self.known(route);
        let known = self.0.entry(route).or_default();
        known.busy.record(busy);
        known.rule.record(busy / LENIENCY);
        Some(route.0)
    }

    /// Returns the route to record; if there are too many, those without a result are removed
    /// first.
    fn known(&mut self, route: Route) -> Route {
        if self.is_full() && !self.0.contains_key(&route) {
            self.0
                .retain(|_, known| known.rule.is_inline() || known.rule.needed() > STREAK_FIRST);
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
    const LONG: Duration = Duration::from_millis(11);

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
    fn a_route_has_an_account_of_its_own_once_a_run_has_ended() {
        let mut routes = Routes::default();
        let (new, other) = (route("/new"), route("/other"));
        assert_eq!(routes.account(new), routes.account(other));
        let learnt = routes.record(new, SHORT);
        assert_eq!(learnt, Some(routes.account(new)));
        assert_ne!(routes.account(new), routes.account(other));
        assert_eq!(routes.record(Route::LEAVING, SHORT), None);
        assert_ne!(routes.account(Route::LEAVING), routes.account(other));
    }

    #[test]
    fn a_route_proves_itself_alone() {
        let mut routes = Routes::default();
        assert_eq!(routes.depth(route("/short"), false), 1);
        prove(&mut routes, route("/short"));
        assert_eq!(routes.depth(route("/short"), false), DEPTH_MAX);
        assert_eq!(routes.depth(route("/other"), false), 1);
        assert_eq!(routes.depth(route("/other"), true), EVENT_DEPTH);
        routes.record(route("/short"), LONG);
        assert_eq!(routes.depth(route("/short"), false), 1);
        assert_eq!(routes.depth(route("/short"), true), 1);
    }

    #[test]
    fn one_long_run_in_ten_thousand_is_forgiven() {
        let mut routes = Routes::default();
        prove(&mut routes, route("/short"));
        for _ in 0..10_000 {
            routes.record(route("/short"), SHORT);
        }
        routes.record(route("/short"), LONG);
        assert!(routes.depth(route("/short"), false) > 1);
        routes.record(route("/short"), LONG);
        assert_eq!(routes.depth(route("/short"), false), 1);
    }

    #[test]
    fn a_run_that_was_merely_interrupted_is_not_long() {
        let mut routes = Routes::default();
        prove(&mut routes, route("/short"));
        routes.record(route("/short"), LONG / 2);
        assert!(routes.depth(route("/short"), false) > 1);
    }

    #[test]
    fn fewer_of_longer_runs_are_sent_ahead() {
        let mut routes = Routes::default();
        for _ in 0..STREAK_FIRST {
            routes.record(route("/"), Duration::from_micros(800));
        }
        assert_eq!(routes.depth(route("/"), false), 8);
    }

    #[test]
    fn invented_paths_do_not_drive_out_what_is_proven() {
        let mut routes = Routes::default();
        prove(&mut routes, route("/short"));
        for number in 0..10 * ROUTES_MAX {
            routes.record(route(&format!("/{number}")), SHORT);
        }
        assert!(routes.0.len() <= ROUTES_MAX + 1);
        assert_eq!(routes.depth(route("/short"), false), DEPTH_MAX);
    }
}
