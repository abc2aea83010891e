use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::sketch::Sketch;
use crate::admission::ServiceTime;

/// The time in which half of the usage is forgotten: one second. Long enough to recognise a flood,
/// and short enough that a client that has done its large job is like any other a few seconds
/// later.
pub const HALF_LIFE: Duration = Duration::from_secs(1);

/// The number of routes that are told apart. Those that have used next to nothing of late make way
/// for others; if there are too many all the same, those beyond share one account.
pub const ROUTES_MAX: usize = 4_096;

/// The expected time of a run of a route of which none has ended yet: so little that a burst on a
/// server that was just started is admitted. The first run that ends replaces it.
pub const EXPECTED_OF_NEW: Duration = Duration::from_micros(20);

/// The most that is expected of a run, even if its caller has stated more: one hour.
pub const STATED_MAX: Duration = Duration::from_hours(1);

/// The usage below which an account may be forgotten, in faded seconds: 0.1 ms, the worth of one
/// second after 13 half-lives.
const FORGOTTEN: f64 = 1e-4;

/// The number of half-lives after which the scale of usages is restarted; 2^500 is far below the
/// largest `f64`.
const RESCALED_AFTER: f64 = 500.0;

/// The account of the routes beyond [`ROUTES_MAX`].
const SHARED: u64 = u64::MAX;

/// The work of one client on one route; each is identified by a hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flow {
    /// The route.
    pub route: u64,
    /// The client.
    pub client: u64,
}

/// The recent usage of all routes and clients.
///
/// Usages fade by growth of the unit instead of by shrinking each number: a usage `t` after the
/// beginning weighs `2^(t / HALF_LIFE)`, so usages of one moment can be compared without touching
/// any (forward decay, Cormode et al. 2009). So an order of usages stays right while nothing is
/// charged.
#[derive(Clone, Debug)]
pub struct Usage {
    began: Instant,
    /// Changes with the scale: a stored usage must be read again after that.
    scale: u32,
    clients: Sketch,
    routes: FxHashMap<u64, RouteUsage>,
    /// The time of the last sweep of routes that may be forgotten.
    swept: Option<Instant>,
}

#[derive(Clone, Copy, Debug, Default)]
struct RouteUsage {
    used: f64,
    run: ServiceTime,
    stated: Statements,
}

/// The times that callers have stated of their latest runs, and the times that these took.
#[derive(Clone, Copy, Debug, Default)]
struct Statements {
    stated: ServiceTime,
    taken: ServiceTime,
}

impl Statements {
    fn record(&mut self, stated: Duration, taken: Duration) {
        self.stated.record(stated);
        self.taken.record(taken);
    }

    /// Returns how many times as long as stated the latest runs took, all together; 1 before the
    /// first.
    fn factor(&self) -> f64 {
        let stated = self.stated.mean().as_secs_f64();
        if stated > 0.0 {
            self.taken.mean().as_secs_f64() / stated
        } else {
            1.0
        }
    }
}

impl Usage {
    /// Creates the state in which nothing has been used.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self {
            began: now,
            scale: 0,
            clients: Sketch::new(),
            routes: FxHashMap::default(),
            swept: None,
        }
    }

    /// Charges time to a flow.
    pub fn charge(&mut self, flow: Flow, used: Duration, now: Instant) {
        self.add(flow, used.as_secs_f64(), now);
    }

    /// Gives back time that was charged in advance and not used. The refund fades from the moment
    /// when it was `charged`: by now less is left of it, and the whole would pay for other work
    /// too.
    pub fn refund(&mut self, flow: Flow, unused: Duration, charged: Instant) {
        self.add(flow, -unused.as_secs_f64(), charged);
    }

    /// Learns the time of a run of this route that has ended, for the expectation of the next ones.
    pub fn learn(&mut self, route: u64, run: Duration) {
        self.account(route).run.record(run);
    }

    /// Returns the time that a run of this route is expected to use: the mean of its latest;
    /// [`EXPECTED_OF_NEW`] before the first.
    #[must_use]
    pub fn expected(&self, route: u64) -> Duration {
        let mean = self.known(route).map(|known| known.run.mean());
        mean.filter(|mean| !mean.is_zero())
            .unwrap_or(EXPECTED_OF_NEW)
    }

    /// Learns the time of a run of this route that has ended, for which its caller had stated
    /// `stated`.
    pub fn learn_stated(&mut self, route: u64, stated: Duration, run: Duration) {
        self.account(route).stated.record(stated, run);
    }

    /// Returns the time that a run of this route is expected to use for which its caller states
    /// `stated`: that, times the ratio of time taken to time stated of the latest such runs. So
    /// only the proportions need to be right, and not the speed of the machine. At least
    /// [`EXPECTED_OF_NEW`], at most [`STATED_MAX`].
    ///
    /// # Worked numbers
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use greenroom_stage::fair::Usage;
    ///
    /// let ms = Duration::from_millis;
    /// let mut usage = Usage::new(Instant::now());
    /// assert_eq!(usage.expected_of_stated(1, ms(300)), ms(300));
    /// usage.learn_stated(1, ms(100), ms(400)); // a slow machine
    /// assert_eq!(usage.expected_of_stated(1, ms(300)), ms(1_200));
    /// ```
    #[must_use]
    pub fn expected_of_stated(&self, route: u64, stated: Duration) -> Duration {
        let factor = self.known(route).map_or(1.0, |known| known.stated.factor());
        let seconds = (stated.as_secs_f64() * factor).min(STATED_MAX.as_secs_f64());
        Duration::from_secs_f64(seconds).max(EXPECTED_OF_NEW)
    }

    /// Returns the recent usage of the route, in faded seconds.
    #[must_use]
    pub fn of_route(&self, route: u64, now: Instant) -> f64 {
        self.route(route) / self.weight(now)
    }

    /// Returns the recent usage of the client, in faded seconds; never too little, and too much
    /// only if it meets others in the sketch.
    #[must_use]
    pub fn of_client(&self, client: u64, now: Instant) -> f64 {
        self.client(client) / self.weight(now)
    }

    /// Returns the usage of route and client together, to be compared with others' only.
    pub(crate) fn of_flow(&self, flow: Flow) -> f64 {
        self.route(flow.route) + self.client(flow.client)
    }

    /// Returns what a run that takes this long from now on adds to [`of_flow`](Self::of_flow).
    pub(crate) fn of_run(&self, expected: Duration, now: Instant) -> f64 {
        2.0 * expected.as_secs_f64() * self.weight(now)
    }

    pub(crate) fn scale(&self) -> u32 {
        self.scale
    }

    /// Returns the route's usage, to be compared with others' only.
    pub(super) fn route(&self, route: u64) -> f64 {
        self.known(route).map_or(0.0, |known| known.used)
    }

    /// Returns the client's usage, to be compared with others' only.
    pub(super) fn client(&self, client: u64) -> f64 {
        self.clients.estimate(client)
    }

    /// Returns the weight of a second that is used now. No charge exceeds the scale, but a reader
    /// may come after a longer rest, and infinity times zero is not a number.
    pub(super) fn weight(&self, now: Instant) -> f64 {
        self.half_lives(now).min(2.0 * RESCALED_AFTER).exp2()
    }

    fn half_lives(&self, now: Instant) -> f64 {
        let elapsed = now.saturating_duration_since(self.began).as_secs_f64();
        // A charge made before the scale was restarted is given back at the weight it has now.
        let before = self.began.saturating_duration_since(now).as_secs_f64();
        (elapsed - before) / HALF_LIFE.as_secs_f64()
    }

    fn add(&mut self, flow: Flow, seconds: f64, now: Instant) {
        if self.half_lives(now) > RESCALED_AFTER {
            self.rescale(now);
        }
        self.make_way(flow.route, now);
        let used = seconds * self.weight(now);
        self.clients.add(flow.client, used);
        let route = self.account(flow.route);
        route.used = (route.used + used).max(0.0);
    }

    fn rescale(&mut self, now: Instant) {
        let factor = 1.0 / self.weight(now);
        self.clients.scale(factor);
        for route in self.routes.values_mut() {
            route.used *= factor;
        }
        self.began = now;
        self.scale = self.scale.wrapping_add(1);
    }

    /// Forgets idle routes to make room for a new one. Names can be invented, as the paths of
    /// requests with a 404 response are: without this, a client that sends enough of them takes
    /// their accounts from all routes that come later. Runs once in a half-life at most, since it
    /// looks at all routes.
    fn make_way(&mut self, route: u64, now: Instant) {
        let is_fresh = |swept: Instant| now.saturating_duration_since(swept) < HALF_LIFE;
        if !self.is_full() || self.routes.contains_key(&route) || self.swept.is_some_and(is_fresh) {
            return;
        }
        self.swept = Some(now);
        let forgotten = FORGOTTEN * self.weight(now);
        self.routes.retain(|_, route| route.used >= forgotten);
    }

    fn known(&self, route: u64) -> Option<&RouteUsage> {
        let shared = || self.routes.get(&SHARED).filter(|_| self.is_full());
        self.routes.get(&route).or_else(shared)
    }

    fn account(&mut self, route: u64) -> &mut RouteUsage {
        let must_share = self.is_full() && !self.routes.contains_key(&route);
        let route = if must_share { SHARED } else { route };
        self.routes.entry(route).or_default()
    }

    fn is_full(&self) -> bool {
        self.routes.len() >= ROUTES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: Flow = Flow {
        route: 1,
        client: 0x1234_5678,
    };

    #[test]
    fn the_largest_statements_and_runs_are_numbers_still() {
        let mut usage = Usage::new(Instant::now());
        let most = Duration::MAX;
        assert_eq!(usage.expected_of_stated(1, most), STATED_MAX);
        assert_eq!(usage.expected_of_stated(1, Duration::ZERO), EXPECTED_OF_NEW);
        usage.learn_stated(1, Duration::ZERO, most);
        assert_eq!(usage.expected_of_stated(1, most), STATED_MAX);
        usage.learn_stated(2, most, Duration::ZERO);
        assert_eq!(usage.expected_of_stated(2, most), EXPECTED_OF_NEW);
    }

    #[test]
    fn usage_fades_by_half_in_a_half_life() {
        let start = Instant::now();
        let mut usage = Usage::new(start);
        usage.charge(FLOW, Duration::from_secs(8), start);
        let after = |lives: u32| usage.of_client(FLOW.client, start + HALF_LIFE * lives);
        assert!((after(0) - 8.0).abs() < 1e-9);
        assert!((after(3) - 1.0).abs() < 1e-9);
        assert!((usage.of_route(1, start + HALF_LIFE) - 4.0).abs() < 1e-9);
        assert!(usage.of_route(2, start).abs() < 1e-9);
    }

    #[test]
    fn a_server_that_runs_for_a_week_still_tells_who_used_more() {
        let start = Instant::now();
        let mut usage = Usage::new(start);
        for hour in 0..168 {
            let now = start + Duration::from_hours(hour);
            usage.charge(FLOW, Duration::from_secs(1), now);
            usage.charge(Flow { client: 7, ..FLOW }, Duration::from_millis(1), now);
            assert!(usage.of_client(FLOW.client, now) > 0.9);
            assert!(usage.of_client(7, now) < 0.01);
        }
    }

    #[test]
    fn what_was_expected_and_not_used_is_given_back() {
        let start = Instant::now();
        let mut usage = Usage::new(start);
        usage.charge(FLOW, Duration::from_millis(30), start);
        usage.refund(FLOW, Duration::from_millis(29), start);
        assert!((usage.of_client(FLOW.client, start) - 0.001).abs() < 1e-9);
        usage.refund(FLOW, Duration::from_secs(1), start);
        assert!(usage.of_route(1, start).abs() < 1e-9);
    }

    #[test]
    fn what_is_given_back_late_pays_for_nothing_else() {
        let start = Instant::now();
        let (mut usage, later) = (Usage::new(start), start + 3 * HALF_LIFE);
        usage.charge(FLOW, Duration::from_secs(8), start);
        usage.charge(FLOW, Duration::from_secs(1), later);
        usage.refund(FLOW, Duration::from_secs(8), start);
        assert!((usage.of_client(FLOW.client, later) - 1.0).abs() < 1e-9);
        assert!((usage.of_route(1, later) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn invented_routes_do_not_take_the_accounts_of_all_that_come_later() {
        let start = Instant::now();
        let (mut usage, later) = (Usage::new(start), start + 20 * HALF_LIFE);
        for route in 1..=2 * ROUTES_MAX as u64 {
            usage.charge(Flow { route, ..FLOW }, Duration::from_millis(1), start);
        }
        let (busy, fresh) = (1 << 40, 1 << 41);
        let charge = |usage: &mut Usage, route| {
            usage.charge(Flow { route, ..FLOW }, Duration::from_secs(1), later);
        };
        charge(&mut usage, busy);
        assert!((usage.of_route(busy, later) - 1.0).abs() < 1e-9);
        assert!(usage.of_route(fresh, later).abs() < 1e-9);
    }

    #[test]
    fn after_a_long_rest_numbers_are_still_numbers() {
        let start = Instant::now();
        let (mut usage, later) = (Usage::new(start), start + Duration::from_hours(9));
        usage.charge(FLOW, Duration::from_secs(8), start);
        assert!(usage.weight(later).is_finite());
        assert!(usage.of_client(FLOW.client, later) < 1e-9);
        usage.charge(FLOW, Duration::from_secs(1), later);
        assert!((usage.of_client(FLOW.client, later) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn routes_beyond_the_limit_share_an_account() {
        let start = Instant::now();
        let mut usage = Usage::new(start);
        for route in 1..=2 * ROUTES_MAX as u64 {
            usage.learn(route, Duration::from_millis(5));
        }
        assert!(usage.routes.len() <= ROUTES_MAX + 1);
        assert_eq!(usage.expected(1), Duration::from_millis(5));
        assert_eq!(
            usage.expected(3 * ROUTES_MAX as u64),
            Duration::from_millis(5)
        );
    }
}
