use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;
use greenroom_timing::interned;
use http::Method;
use metrics::{Counter, counter};
use parking_lot::Mutex;
use rustc_hash::FxBuildHasher;

use super::moves::{MoveReason, Moves};
use super::outer;
use super::poll_times::PollTimes;
use super::rule::{Move, Rule, STREAK_LIKELY};
use super::status::{Placed, RouteStatus};
use crate::scope::{StatusScope, WeakScope};
use crate::stage::{Priority, Rank, RouteName, Stage};

/// The routes of the process by their id, in the order of their first requests. Locked for moments
/// only, in which no route is dropped: that takes the lock.
static ROUTES: Mutex<BTreeMap<usize, Weak<Route>>> = Mutex::new(BTreeMap::new());

/// A route of a placement: its place and the record of its runs.
#[derive(Debug)]
pub(crate) struct Route {
    /// Read by every request; so no field that is written often lies beside it.
    is_inline: CachePadded<AtomicBool>,
    id: usize,
    /// The number of its method among [`METHODS`].
    method: usize,
    path: &'static str,
    /// `true` if it was placed by name and may not move.
    is_fixed: bool,
    next: OnceLock<Arc<Route>>,
    /// The server in which it had its first request.
    scope: Option<WeakScope>,
    /// The number of the stage to which a handler of it has submitted work last; 0 before.
    stage: AtomicU64,
    /// The poll time up to which inline runs are recorded without a look at the rule.
    long_run: Duration,
    poll_times: PollTimes,
    judge: Mutex<Judge>,
    is_likely_short: AtomicBool,
    /// It blocks in place.
    is_kept: AtomicBool,
    /// Counted up to [`STREAK_LIKELY`] or so.
    requests: AtomicU32,
    has_yielded: AtomicBool,
    moves: AtomicU64,
    sheds: AtomicU64,
    shed_meter: OnceLock<Counter>,
    stalls: AtomicU64,
}

/// The rule, and the number of inline runs that it has taken into account.
#[derive(Debug)]
struct Judge {
    rule: Rule,
    counted: u64,
    latest_moves: Moves,
}

impl Drop for Route {
    fn drop(&mut self) {
        ROUTES.lock().remove(&self.id);
    }
}

impl Route {
    /// True if it runs on the loop: one atomic read.
    pub(crate) fn is_inline(&self) -> bool {
        self.is_inline.load(Ordering::Relaxed)
    }

    /// True if its staged runs go before other new work.
    pub(crate) fn is_likely_short(&self) -> bool {
        self.is_likely_short.load(Ordering::Relaxed)
    }

    /// Records a run on the loop. A short one writes nothing that another loop reads. A long one of
    /// a route that was sent back meanwhile says nothing new: the watchdog saw that run, or one
    /// that stood still with it.
    pub(crate) fn record_inline(&self, poll_time: Duration) {
        self.poll_times.record(poll_time);
        if poll_time > self.long_run {
            self.consult(MoveReason::Long, |rule| {
                rule.is_inline().then(|| rule.record(poll_time)).flatten()
            });
        }
    }

    /// Records a run on the stage.
    pub(crate) fn record_staged(&self, poll_time: Duration) {
        self.poll_times.record(poll_time);
        self.consult(MoveReason::Long, |rule| rule.record(poll_time));
    }

    /// Records a stall that the watchdog sees, and moves the route to its stage.
    pub(crate) fn stall(&self) {
        self.stalls.fetch_add(1, Ordering::Relaxed);
        self.counter("greenroom_route_stalls_total").increment(1);
        self.consult(MoveReason::Stalled, Rule::stalled);
    }

    /// Returns the poll time beyond which a run is long.
    pub(super) fn long_run(&self) -> Duration {
        self.long_run
    }

    /// Returns `true` if nothing of it may run on a loop: neither its handler nor its bodies.
    pub(super) fn is_kept_on_stage(&self) -> bool {
        self.is_kept.load(Ordering::Relaxed) || (self.is_fixed && !self.is_inline())
    }

    /// Keeps the route on its stage from now on, the only place where it can run.
    pub(super) fn pin(&self) {
        self.is_kept.store(true, Ordering::Relaxed);
        if self.is_fixed || self.judge.lock().rule.is_pinned() {
            return;
        }
        self.consult(MoveReason::BlocksInPlace, Rule::pin);
        let (method, path) = (self.method(), self.path);
        tracing::warn!(
            method,
            path,
            "a handler blocks in place, which works on a stage only: its route stays there"
        );
    }

    /// Yields to a placement further in. Requests that no router has matched may be several things,
    /// placed and not, and stay under their own rule; so do those of a route that was given to a
    /// stage, for what it does around the inner one.
    pub(super) fn yield_to_inner(&self) {
        let stays = self.path.is_empty() || self.is_kept_on_stage();
        if stays || self.has_yielded.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut judge = self.judge.lock();
        if judge.rule.yielded().is_some() {
            judge.counted = self.poll_times.runs();
            self.is_inline.store(true, Ordering::Relaxed);
        }
    }

    /// True if requests only come through it, to a route of another placement.
    pub(crate) fn is_passed_through(&self) -> bool {
        self.has_yielded.load(Ordering::Relaxed) && self.is_inline()
    }

    /// Returns the rank of the next request. The first [`STREAK_LIKELY`] of a route that is placed
    /// automatically are admitted: of a new route nothing is known yet, neither if it is short nor
    /// if there is an inner placement, whose priority counts.
    pub(crate) fn rank(&self, own: Priority) -> Rank {
        if self.is_passed_through() {
            return Rank::of(Priority::Critical);
        }
        Rank {
            priority: own,
            is_unproven: self.is_new(),
        }
    }

    /// True if the status of this scope shows it.
    pub(crate) fn is_shown_in(&self, scope: &StatusScope) -> bool {
        self.scope.as_ref().is_none_or(|own| own.is(scope))
    }

    pub(crate) fn scope(&self) -> Option<WeakScope> {
        self.scope.clone()
    }

    /// Has the route's scope show a stage to which a handler of the route submits work.
    pub(crate) fn note_stage(&self, stage: &Stage) {
        // Loaded first: most handlers use one stage, and the list of stages has a lock.
        if self.stage.load(Ordering::Relaxed) == stage.number() {
            return;
        }
        self.stage.store(stage.number(), Ordering::Relaxed);
        if let Some(scope) = self.scope.as_ref().and_then(WeakScope::upgrade) {
            stage.claim(&scope);
        }
    }

    fn is_new(&self) -> bool {
        // The load spares a route that is no longer new the write to a shared cache line.
        !self.is_fixed
            && self.requests.load(Ordering::Relaxed) < STREAK_LIKELY
            && self.requests.fetch_add(1, Ordering::Relaxed) < STREAK_LIKELY
    }

    pub(crate) fn shed(&self) {
        self.sheds.fetch_add(1, Ordering::Relaxed);
        let counter = || self.counter("greenroom_route_rejected_total");
        self.shed_meter.get_or_init(counter).increment(1);
    }

    /// True if rejecting a request saves its loop much more than it costs. A rejection takes some
    /// 16 us, most of it the system's: to reject work that takes little longer would only turn
    /// responses into rejections. At twice the load that a loop can take, it serves 90 % of its
    /// capacity only if a rejection costs a twelfth of a response. A staged route that is likely
    /// short is let through as well, if it may move: it could never prove itself again.
    pub(crate) fn is_worth_shedding(&self) -> bool {
        if self.is_inline() {
            self.poll_times.mean_of_this_thread() >= WORTH_SHEDDING
        } else {
            self.is_fixed || !self.is_likely_short()
        }
    }

    pub(crate) fn id(&self) -> usize {
        self.id
    }

    /// Returns the name under which stages know it.
    pub(crate) fn name(&self) -> RouteName {
        RouteName {
            key: self.id as u64 + 1,
            method: self.method(),
            path: self.path,
        }
    }

    pub(crate) fn method(&self) -> &'static str {
        METHODS[self.method]
    }

    pub(crate) fn path(&self) -> &'static str {
        self.path
    }

    pub(crate) fn status(&self) -> RouteStatus {
        let (rule, latest_moves) = {
            let judge = self.judge.lock();
            (judge.rule, judge.latest_moves.shown(Instant::now()))
        };
        RouteStatus {
            latest_moves,
            streak: rule.streak(),
            streak_needed: rule.needed(),
            method: self.method().to_owned(),
            path: self.path.to_string(),
            placed: match (self.is_fixed, self.is_inline()) {
                (true, true) => Placed::Inline,
                (true, false) => Placed::Staged,
                (false, true) => Placed::AutoInline,
                (false, false) => Placed::AutoStaged,
            },
            is_pinned: rule.is_pinned() && !self.is_fixed,
            poll_time: self.poll_times.quantiles(),
            moves: self.moves.load(Ordering::Relaxed),
            sheds: self.sheds.load(Ordering::Relaxed),
            stalls: self.stalls.load(Ordering::Relaxed),
        }
    }

    /// Asks the rule for a move, which is for this reason if it is back to the stage. A route that
    /// was given to a stage is pinned to it: of such the rule says only if it is likely short.
    fn consult(&self, back: MoveReason, ask: impl FnOnce(&mut Rule) -> Option<Move>) {
        if self.is_fixed && self.is_inline() {
            return;
        }
        let mut judge = self.judge.lock();
        let moved = self.ask(&mut judge, ask);
        let is_likely_short = judge.rule.is_likely_short();
        self.is_likely_short
            .store(is_likely_short, Ordering::Relaxed);
        let Some(to) = moved else { return };
        let reason = match to {
            Move::Inline => MoveReason::ProvenShort,
            Move::Staged => back,
        };
        judge.latest_moves.add(Instant::now(), to, reason);
        self.is_inline.store(to == Move::Inline, Ordering::Relaxed);
        self.moves.fetch_add(1, Ordering::Relaxed);
        self.counter("greenroom_route_moves_total").increment(1);
        tracing::debug!(
            method = self.method(),
            path = self.path,
            ?to,
            "a route moves"
        );
    }

    /// Applies `ask` to the rule, up to date with all inline runs: each thread counts its own, and
    /// they are summed up only here.
    fn ask(&self, judge: &mut Judge, ask: impl FnOnce(&mut Rule) -> Option<Move>) -> Option<Move> {
        if judge.rule.is_inline() {
            let runs = self.poll_times.runs();
            judge.rule.ran_inline(runs.saturating_sub(judge.counted));
            judge.counted = runs;
        }
        let moved = ask(&mut judge.rule);
        if moved == Some(Move::Inline) {
            judge.counted = self.poll_times.runs();
        }
        moved
    }

    fn counter(&self, name: &'static str) -> Counter {
        counter!(name, "http_request_method" => self.method(), "http_route" => self.path)
    }

    fn is_for(&self, method: usize, path: &str) -> bool {
        self.method == method && self.path == path
    }
}

/// The mean poll time below which inline requests are not rejected for the sake of a loop that is
/// behind.
pub const WORTH_SHEDDING: Duration = Duration::from_micros(200);

const BUCKETS: usize = 64;

/// The position of a route in its placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RouteAt {
    bucket: u8,
    depth: u32,
}

impl RouteAt {
    /// Returns it as a number, from 1 on, or 0 if it is too far down its chain for one.
    pub(super) fn packed(self) -> u32 {
        let depth = self.depth.checked_add(1).filter(|depth| *depth < 1 << 24);
        depth.map_or(0, |depth| depth << 8 | u32::from(self.bucket))
    }

    pub(super) fn unpacked(number: u32) -> Option<Self> {
        let [bucket, ..] = number.to_le_bytes();
        let depth = (number >> 8).checked_sub(1)?;
        Some(Self { bucket, depth })
    }
}

/// The routes of a placement, found without a lock: chains that only grow. A request under way
/// keeps the placement, and knows the route by its position.
#[derive(Debug)]
pub(crate) struct Routes {
    chains: [OnceLock<Arc<Route>>; BUCKETS],
    /// `None` for routes that are always inline.
    stage: Option<Stage>,
    is_fixed: bool,
    rule: Rule,
}

impl Routes {
    /// Creates a table whose routes begin on this stage or else inline, and may move by this rule
    /// unless fixed.
    pub(crate) fn new(stage: Option<Stage>, is_fixed: bool, mut rule: Rule) -> Self {
        if is_fixed {
            rule.pin();
        }
        Self {
            chains: std::array::from_fn(|_| OnceLock::new()),
            stage,
            is_fixed,
            rule,
        }
    }

    pub(crate) fn find(&self, method: &Method, path: &str) -> RouteAt {
        self.find_numbered(number_of(method), path)
    }

    pub(super) fn find_numbered(&self, method: usize, path: &str) -> RouteAt {
        let bucket = bucket(method, path);
        let mut link = &self.chains[bucket as usize];
        for depth in 0.. {
            let route = link.get_or_init(|| self.add(method, path));
            if route.is_for(method, path) {
                return RouteAt { bucket, depth };
            }
            link = &route.next;
        }
        unreachable!("a chain ends with the route that is added")
    }

    /// Returns the route at a position that was [found](Self::find).
    pub(crate) fn at(&self, at: RouteAt) -> &Arc<Route> {
        self.get(at).expect("it was found there")
    }

    /// Returns `true` if the route of this method and interned path is there.
    pub(super) fn has(&self, at: RouteAt, method: usize, path: &'static str) -> bool {
        self.get(at)
            .is_some_and(|route| route.method == method && ptr::eq(route.path, path))
    }

    fn get(&self, at: RouteAt) -> Option<&Arc<Route>> {
        let mut link = &self.chains[at.bucket as usize];
        for _ in 0..at.depth {
            link = &link.get()?.next;
        }
        link.get()
    }

    fn add(&self, method: usize, path: &str) -> Arc<Route> {
        static IDS: AtomicUsize = AtomicUsize::new(0);
        let scope = outer::scope();
        if let (Some(stage), Some(scope)) = (&self.stage, &scope)
            && let Some(scope) = scope.upgrade()
        {
            stage.claim(&scope);
        }
        let route = Arc::new(Route {
            is_inline: CachePadded::new(AtomicBool::new(self.stage.is_none())),
            scope,
            stage: AtomicU64::new(0),
            id: IDS.fetch_add(1, Ordering::Relaxed),
            method,
            path: interned(path),
            is_fixed: self.is_fixed,
            next: OnceLock::new(),
            poll_times: PollTimes::default(),
            long_run: self.rule.long_run(),
            judge: Mutex::new(Judge {
                rule: self.rule,
                counted: 0,
                latest_moves: Moves::default(),
            }),
            is_likely_short: AtomicBool::new(false),
            is_kept: AtomicBool::new(false),
            requests: AtomicU32::new(0),
            has_yielded: AtomicBool::new(false),
            moves: AtomicU64::new(0),
            sheds: AtomicU64::new(0),
            shed_meter: OnceLock::new(),
            stalls: AtomicU64::new(0),
        });
        ROUTES.lock().insert(route.id, Arc::downgrade(&route));
        route
    }
}

/// Returns the bucket of a route. No client can make up a path, so the hash need not resist
/// collisions.
#[expect(
    clippy::cast_possible_truncation,
    reason = "there are fewer buckets than that"
)]
fn bucket(method: usize, path: &str) -> u8 {
    (FxBuildHasher.hash_one((method, path)) % BUCKETS as u64) as u8
}

/// Returns all routes of the process, in the order of their first requests.
pub(crate) fn routes() -> Vec<Arc<Route>> {
    ROUTES.lock().values().filter_map(Weak::upgrade).collect()
}

/// Returns the route with this id, if it still exists.
pub(crate) fn find(id: usize) -> Option<Arc<Route>> {
    ROUTES.lock().get(&id).and_then(Weak::upgrade)
}

/// The methods of HTTP. A client can make up others, which share the first name, or it would make
/// up routes.
pub(super) const METHODS: [&str; 10] = [
    "other", "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE",
];

/// Returns the number of a method among [`METHODS`].
pub(super) fn number_of(method: &Method) -> usize {
    match *method {
        Method::CONNECT => 1,
        Method::DELETE => 2,
        Method::GET => 3,
        Method::HEAD => 4,
        Method::OPTIONS => 5,
        Method::PATCH => 6,
        Method::POST => 7,
        Method::PUT => 8,
        Method::TRACE => 9,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule::{PROVEN_RUNS, STREAK_FIRST};
    use super::*;
    use std::thread;

    const SHORT: Duration = Duration::from_micros(5);
    const LONG: Duration = Duration::from_millis(30);

    fn auto_routes() -> Routes {
        let stage = Stage::builder("routes").threads(1..=1).build();
        Routes::new(stage.ok(), false, Rule::default())
    }

    fn found(routes: &Routes, path: &str) -> Arc<Route> {
        Arc::clone(routes.at(routes.find(&Method::GET, path)))
    }

    /// Returns a route that has become inline.
    fn inline_route() -> Arc<Route> {
        let route = found(&auto_routes(), "/");
        for _ in 0..STREAK_FIRST {
            assert!(!route.is_inline());
            route.record_staged(SHORT);
        }
        assert!(route.is_inline());
        route
    }

    /// Else what its middleware computes would be on the loop for good.
    #[test]
    fn a_route_that_was_given_to_a_stage_stays_there_around_another_placement() {
        let stage = Stage::builder("given").threads(1..=1).build();
        let routes = Routes::new(stage.ok(), true, Rule::default());
        let route = found(&routes, "/given");
        route.yield_to_inner();
        assert!(!route.is_inline() && !route.is_passed_through());
    }

    #[test]
    fn a_route_that_was_given_to_a_stage_is_likely_short_there_and_stays() {
        let stage = Stage::builder("given").threads(1..=1).build();
        let routes = Routes::new(stage.ok(), true, Rule::default());
        let route = found(&routes, "/given");
        for _ in 0..2 * STREAK_FIRST {
            route.record_staged(SHORT);
        }
        assert!(!route.is_inline() && route.is_likely_short());
        assert!(route.is_worth_shedding());
        let status = route.status();
        assert_eq!((status.placed, status.moves), (Placed::Staged, 0));
        assert!(!status.is_pinned);
        route.record_staged(LONG);
        assert!(!route.is_likely_short());
    }

    #[test]
    fn one_long_run_sends_a_route_back_that_is_not_proven() {
        let route = inline_route();
        route.record_inline(LONG);
        assert!(!route.is_inline() && route.is_likely_short());
        let status = route.status();
        assert_eq!((status.moves, status.streak_needed), (2, 2 * STREAK_FIRST));
        let moves = status.latest_moves.iter();
        let moves: Vec<_> = moves.map(|made| (made.to, made.reason)).collect();
        let back = (Move::Staged, MoveReason::Long);
        assert_eq!(moves, [back, (Move::Inline, MoveReason::ProvenShort)]);
    }

    #[test]
    fn ten_thousand_short_runs_on_two_loops_outweigh_one_long_one() {
        let route = inline_route();
        let runs = || (0..5_000).for_each(|_| route.record_inline(SHORT));
        thread::scope(|scope| [scope.spawn(runs), scope.spawn(runs)].map(|_| ()));
        route.record_inline(LONG);
        assert!(route.is_inline());
        route.record_inline(LONG);
        assert!(!route.is_inline());
    }

    /// The machine stands still for a moment: a run on each of two loops stalls and ends long.
    #[test]
    fn a_proven_route_that_stalls_once_returns_soon() {
        let route = inline_route();
        (0..PROVEN_RUNS).for_each(|_| route.record_inline(SHORT));
        route.stall();
        route.stall();
        route.record_inline(LONG);
        route.record_inline(LONG);
        assert!(!route.is_inline() && route.is_likely_short());
        (0..STREAK_LIKELY).for_each(|_| route.record_staged(SHORT));
        assert!(route.is_inline());
        route.stall();
        assert_eq!(route.status().streak_needed, 2 * STREAK_FIRST);
    }

    #[test]
    fn a_route_is_found_again_and_no_other() {
        let routes = auto_routes();
        let paths: Vec<_> = (0..500).map(|number| format!("/path/{number}")).collect();
        for path in &paths {
            let get = found(&routes, path);
            assert!(Arc::ptr_eq(&get, &found(&routes, path)));
            assert_ne!(
                routes.find(&Method::GET, path),
                routes.find(&Method::POST, path)
            );
            assert_eq!((get.method(), get.path()), ("GET", path.as_str()));
        }
    }

    #[test]
    fn made_up_methods_share_a_route() {
        let routes = auto_routes();
        let made_up = |name: &[u8]| routes.find(&Method::from_bytes(name).expect("a token"), "/x");
        assert_eq!(made_up(b"FOO"), made_up(b"BAR"));
    }

    #[test]
    fn one_placed_by_name_does_not_move() {
        let fixed = found(&Routes::new(None, true, Rule::default()), "/");
        fixed.record_inline(Duration::from_secs(1));
        fixed.stall();
        assert!(fixed.is_inline());
        assert_eq!((fixed.status().moves, fixed.status().stalls), (0, 1));
    }
}
