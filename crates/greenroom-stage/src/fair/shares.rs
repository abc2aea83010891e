use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::Flow;

/// The number of flows that a table tells apart; of more, the half that wanted least is forgotten.
pub const SHARES_MAX: usize = 256;

/// The number of flows that a table shows, those that wanted most.
pub const SHARES_SHOWN_MAX: usize = 32;

/// The time in which half of the shown usage fades: 10 s. It is longer than
/// [`HALF_LIFE`](super::HALF_LIFE), which decides the order of turns, so that an operator who looks
/// after a flood still sees its source.
pub const SHOWN_HALF_LIFE: Duration = Duration::from_secs(10);

/// A table of the recent usage and rejections of each flow, under a name: for operators. Nothing is
/// decided by it.
#[derive(Debug)]
pub struct Shares<N>(FxHashMap<Flow, ShareRow<N>>);

/// The usage and the rejections of one flow.
#[derive(Debug)]
pub struct ShareRow<N> {
    name: N,
    used: Faded,
    /// The time that its rejected requests would have used.
    missed: Faded,
    in_all: Duration,
    runs: u64,
    rejected: u64,
}

/// One flow as it is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShareShown<N> {
    /// The flow.
    pub flow: Flow,
    /// The name that it was given.
    pub name: N,
    /// The time it used, faded by half each [`SHOWN_HALF_LIFE`].
    pub used_of_late: Duration,
    /// Its percentage of the faded time of all flows of the table.
    pub percent: f64,
    /// The time it used since it was first seen.
    pub used: Duration,
    /// Runs that used something.
    pub runs: u64,
    /// Requests that were rejected.
    pub rejected: u64,
}

impl<N> Default for Shares<N> {
    fn default() -> Self {
        Self(FxHashMap::default())
    }
}

impl<N: Copy> Shares<N> {
    /// Returns the row of a flow; a new flow is added under this name.
    pub fn row(&mut self, flow: Flow, name: N, now: Instant) -> &mut ShareRow<N> {
        if self.0.len() >= SHARES_MAX && !self.0.contains_key(&flow) {
            self.forget_half(now);
        }
        self.0.entry(flow).or_insert_with(|| ShareRow {
            name,
            used: Faded::new(now),
            missed: Faded::new(now),
            in_all: Duration::ZERO,
            runs: 0,
            rejected: 0,
        })
    }

    /// Returns the row of a flow that is in the table.
    pub fn known(&mut self, flow: Flow) -> Option<&mut ShareRow<N>> {
        self.0.get_mut(&flow)
    }

    /// Returns the [`SHARES_SHOWN_MAX`] flows that wanted most of late, whether they got it or not;
    /// the greediest first.
    #[must_use]
    pub fn shown(&self, now: Instant) -> Vec<ShareShown<N>> {
        let all: f64 = self.0.values().map(|row| row.used.of_late(now)).sum();
        let mut rows: Vec<_> = self.0.iter().collect();
        rows.sort_unstable_by(|(_, one), (_, other)| other.wanted(now).total_cmp(&one.wanted(now)));
        let shown = rows.into_iter().take(SHARES_SHOWN_MAX);
        let shown = shown.map(|(flow, row)| row.shown(*flow, all, now));
        shown.collect()
    }

    fn forget_half(&mut self, now: Instant) {
        let mut wanted: Vec<f64> = self.0.values().map(|row| row.wanted(now)).collect();
        let middle = wanted.len() / 2;
        let (_, median, _) = wanted.select_nth_unstable_by(middle, f64::total_cmp);
        let median = *median;
        self.0.retain(|_, row| row.wanted(now) > median);
    }
}

impl<N: Copy> ShareRow<N> {
    /// Records the time that a run used.
    pub fn add_used(&mut self, used: Duration, now: Instant) {
        self.used.add(used, now);
        self.in_all += used;
        self.runs += 1;
    }

    /// Records the rejection of a request that was expected to use `expected`.
    pub fn add_rejected(&mut self, expected: Duration, now: Instant) {
        self.missed.add(expected, now);
        self.rejected += 1;
    }

    fn wanted(&self, now: Instant) -> f64 {
        self.used.of_late(now) + self.missed.of_late(now)
    }

    fn shown(&self, flow: Flow, all: f64, now: Instant) -> ShareShown<N> {
        let of_late = self.used.of_late(now);
        ShareShown {
            flow,
            name: self.name,
            used_of_late: Duration::from_secs_f64(of_late),
            percent: if all > 0.0 {
                of_late / all * 100.0
            } else {
                0.0
            },
            used: self.in_all,
            runs: self.runs,
            rejected: self.rejected,
        }
    }
}

/// Seconds that fade.
#[derive(Debug)]
struct Faded {
    seconds: f64,
    at: Instant,
}

impl Faded {
    fn new(at: Instant) -> Self {
        Self { seconds: 0.0, at }
    }

    fn add(&mut self, used: Duration, now: Instant) {
        self.seconds = self.of_late(now) + used.as_secs_f64();
        self.at = now;
    }

    fn of_late(&self, now: Instant) -> f64 {
        let elapsed = now.saturating_duration_since(self.at).as_secs_f64();
        self.seconds * (-elapsed / SHOWN_HALF_LIFE.as_secs_f64()).exp2()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(client: u64) -> Flow {
        Flow { route: 7, client }
    }

    #[test]
    fn the_greedy_are_shown_however_many_others_come() {
        let now = Instant::now();
        let mut shares = Shares::default();
        let (large, rejected) = (1, 2);
        shares
            .row(flow(large), "large", now)
            .add_used(Duration::from_secs(30), now);
        for _ in 0..10 {
            shares
                .row(flow(rejected), "rejected", now)
                .add_rejected(Duration::from_secs(2), now);
        }
        for client in 100..100 + 10 * SHARES_MAX as u64 {
            let row = shares.row(flow(client), "passer-by", now);
            row.add_used(Duration::from_micros(1), now);
        }
        assert!(shares.0.len() <= SHARES_MAX);
        let shown = shares.shown(now);
        assert!((3..=SHARES_SHOWN_MAX).contains(&shown.len()));
        assert_eq!((shown[0].name, shown[1].name), ("large", "rejected"));
        assert_eq!((shown[0].used, shown[0].runs), (Duration::from_secs(30), 1));
        assert!(shown[0].percent > 99.0, "{:?}", shown[0]);
        assert_eq!((shown[1].used, shown[1].rejected), (Duration::ZERO, 10));
    }

    #[test]
    fn what_was_used_of_late_fades_and_what_was_used_in_all_does_not() {
        let now = Instant::now();
        let mut shares = Shares::default();
        shares
            .row(flow(1), (), now)
            .add_used(Duration::from_secs(8), now);
        let shown = shares.shown(now + 3 * SHOWN_HALF_LIFE);
        assert_eq!(shown[0].used_of_late, Duration::from_secs(1));
        assert_eq!(shown[0].used, Duration::from_secs(8));
    }

    #[test]
    fn a_flow_is_known_once_it_has_a_row() {
        let now = Instant::now();
        let mut shares = Shares::default();
        assert!(shares.known(flow(1)).is_none());
        shares.row(flow(1), (), now);
        assert!(shares.known(flow(1)).is_some());
    }
}
