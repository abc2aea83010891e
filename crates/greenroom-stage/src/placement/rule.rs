use std::time::Duration;

use serde::Serialize;

/// The mean poll time up to which runs are short. A page of 200 us is no stall.
pub const SHORT_RUN: Duration = Duration::from_micros(250);

/// The poll time beyond which a run is long: it ends a streak, and sends a route that is not
/// [proven](PROVEN_RUNS) back to the stage. Four times [`SHORT_RUN`].
pub const LONG_RUN: Duration = Duration::from_millis(1);

/// The ratio of a long run to a short one.
const LONG_PER_SHORT: u32 = 4;

/// The number of short runs in a row that make a new route inline.
pub const STREAK_FIRST: u32 = 64;

/// The number of short runs in a row that suffices however often a route was sent back.
pub const STREAK_MAX: u32 = 65_536;

/// The number of runs in a row, none of them long, after which a staged route is likely short: its
/// runs go before other new work of the stage, and so it can prove itself while the stage is
/// flooded. As many requests of a new route go before others as well, because nothing is known of
/// it.
pub const STREAK_LIKELY: u32 = 8;

/// The number of inline runs since its last long one after which a route is proven: the next long
/// one is forgiven. A thread that loses its processor, or a machine that stands still, makes any
/// run look long once in a while.
pub const PROVEN_RUNS: u64 = 1_000;

/// A move of a route's runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Move {
    /// To the loop itself.
    Inline,
    /// To the stage.
    Staged,
}

/// The rule by which a route moves: safe first, inline when proven short, back when it is long.
///
/// - A route begins staged. [`STREAK_FIRST`] runs in a row make it inline, if none was over
///   [`LONG_RUN`] and they took at most [`SHORT_RUN`] in the mean.
/// - A long run stages it again, and each time the next streak must be twice as long: 64, 128, 256
///   … 65,536.
/// - After [`PROVEN_RUNS`] inline runs without a long one a route is proven. Then one long run is
///   forgiven, and the streak that it may need one day is halved again, down to 64.
/// - A stall, which the watchdog sees while it lasts, stages every route at once, because the next
///   request must be safe. One that was proven returns after [`STREAK_LIKELY`] runs that are not
///   long; if one is, or if it is long again before it is proven anew, it needs a longer streak as
///   any other.
/// - After [`STREAK_LIKELY`] runs in a row that were not long its staged runs go before other new
///   work.
/// - A route that is [pinned](Self::pin) stays staged.
///
/// # Worked numbers
///
/// At 1,000 short requests a second a new route is inline after 64 ms, and proven a second later.
///
/// | long once in | passes streaks of 64 / 256 / 1,024 | its long inline runs forgiven | ends |
/// |---|---|---|---|
/// | 100 | 53 % / 7.6 % / 0.003 % | 0.004 % | staged, after a handful of stalls |
/// | 1,000 | 94 % / 77 % / 36 % | 37 % | staged mostly |
/// | 10,000 | 99 % / 97 % / 90 % | 90 % | inline; some 0.2 % of its runs are staged |
///
/// ```
/// use std::time::Duration;
/// use greenroom_stage::placement::{Move, Rule};
///
/// let (short, long) = (Duration::from_micros(50), Duration::from_millis(30));
/// let mut rule = Rule::default();
/// for _ in 0..63 {
///     assert_eq!(rule.record(short), None);
/// }
/// assert_eq!(rule.record(short), Some(Move::Inline));
/// assert_eq!(rule.record(long), Some(Move::Staged)); // after no inline run: not proven
/// for _ in 0..127 {
///     assert_eq!(rule.record(short), None);
/// }
/// assert_eq!(rule.record(short), Some(Move::Inline));
///
/// rule.ran_inline(10_000);
/// assert_eq!(rule.record(long), None); // once in 10,000 runs is forgiven
/// assert_eq!(rule.record(long), Some(Move::Staged)); // twice is not
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    short_run: Duration,
    is_inline: bool,
    is_pinned: bool,
    /// `true` if it was proven when a stall sent it back: it returns soon.
    is_trusted: bool,
    streak: u32,
    /// Poll time of the streak's runs in all.
    streak_time: Duration,
    needed: u32,
    /// Runs since the last long one, counted as far as they matter.
    not_long: u32,
    /// Inline runs since the last long one, or since it became inline.
    inline_runs: u64,
}

impl Default for Rule {
    fn default() -> Self {
        Self::with_short_run(SHORT_RUN)
    }
}

impl Rule {
    /// Creates a rule that takes `short_run` for short in the mean, in place of [`SHORT_RUN`], and
    /// four times this for long, in place of [`LONG_RUN`].
    #[must_use]
    pub fn with_short_run(short_run: Duration) -> Self {
        Self {
            short_run,
            is_inline: false,
            is_pinned: false,
            is_trusted: false,
            streak: 0,
            streak_time: Duration::ZERO,
            needed: STREAK_FIRST,
            not_long: 0,
            inline_runs: 0,
        }
    }

    /// Takes a finished run into account, on the loop or the stage. A long one that began on the
    /// stage counts against a route that has become inline since.
    pub fn record(&mut self, poll_time: Duration) -> Option<Move> {
        let is_long = poll_time > self.long_run();
        self.not_long = if is_long {
            0
        } else {
            (self.not_long + 1).min(STREAK_LIKELY)
        };
        match (self.is_inline, is_long) {
            (true, true) if self.is_proven() => self.forgive(),
            (true, true) => return Some(self.distrust()),
            (true, false) => self.ran_inline(1),
            (false, true) => self.end_streak(),
            (false, false) => return self.prolong(poll_time),
        }
        None
    }

    /// Takes inline runs into account that were not long, and were not [recorded](Self::record) one
    /// by one.
    pub fn ran_inline(&mut self, runs: u64) {
        self.inline_runs = self.inline_runs.saturating_add(runs);
    }

    /// Takes into account a stall: the watchdog sees a run that holds up a loop, and has not ended
    /// yet.
    pub fn stalled(&mut self) -> Option<Move> {
        if !self.is_inline {
            return None;
        }
        if !self.is_proven() {
            return Some(self.distrust());
        }
        self.forgive();
        self.is_trusted = true;
        Some(self.send_back())
    }

    /// Yields to a placement further in, to which requests only pass through. A route that was
    /// never sent back is inline at once, and proven: what it does itself is next to nothing.
    pub fn yielded(&mut self) -> Option<Move> {
        let may_yield = !self.is_inline && !self.is_pinned && self.needed() == STREAK_FIRST;
        may_yield.then(|| {
            let moved = self.bring_inline();
            self.ran_inline(PROVEN_RUNS);
            moved
        })
    }

    /// Keeps the route on the stage for good, the only place where it can run.
    pub fn pin(&mut self) -> Option<Move> {
        self.is_pinned = true;
        self.is_inline.then(|| self.send_back())
    }

    /// True if no run has been long of late: see [`STREAK_LIKELY`].
    #[must_use]
    pub fn is_likely_short(&self) -> bool {
        self.not_long >= STREAK_LIKELY
    }

    /// True if the route has proven short, and was not sent back since.
    #[must_use]
    pub fn is_inline(&self) -> bool {
        self.is_inline
    }

    /// True if the route stays staged for good: see [`pin`](Self::pin).
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        self.is_pinned
    }

    /// Returns the poll time beyond which a run is long.
    #[must_use]
    pub fn long_run(&self) -> Duration {
        self.short_run.saturating_mul(LONG_PER_SHORT)
    }

    /// Returns the number of short runs in a row that a staged route has had; 0 for one that is
    /// inline.
    #[must_use]
    pub fn streak(&self) -> u32 {
        self.streak
    }

    /// Returns the number of short runs in a row that the next move inline takes.
    #[must_use]
    pub fn needed(&self) -> u32 {
        if self.is_trusted {
            STREAK_LIKELY
        } else {
            self.needed
        }
    }

    fn is_proven(&self) -> bool {
        self.inline_runs >= PROVEN_RUNS
    }

    fn prolong(&mut self, poll_time: Duration) -> Option<Move> {
        if self.is_pinned {
            return None;
        }
        self.streak += 1;
        self.streak_time = self.streak_time.saturating_add(poll_time);
        if self.streak < self.needed() {
            return None;
        }
        // A trusted route was short for long enough: it only has to show that it is not long now.
        if self.is_trusted || self.streak_time / self.streak <= self.short_run {
            return Some(self.bring_inline());
        }
        self.begin_streak();
        None
    }

    /// Begins a new streak after a long staged run.
    fn end_streak(&mut self) {
        if self.is_trusted {
            self.is_trusted = false;
            self.double();
        }
        self.begin_streak();
    }

    fn begin_streak(&mut self) {
        self.streak = 0;
        self.streak_time = Duration::ZERO;
    }

    /// Halves the streak that the route may need one day. Without this, a route that is long once
    /// in 10,000 runs would need the longest streak in the end: one in ten of its long runs comes
    /// too soon to be forgiven.
    fn forgive(&mut self) {
        self.inline_runs = 0;
        self.needed = (self.needed / 2).max(STREAK_FIRST);
    }

    fn distrust(&mut self) -> Move {
        self.double();
        self.send_back()
    }

    fn double(&mut self) {
        self.needed = (self.needed * 2).min(STREAK_MAX);
    }

    fn bring_inline(&mut self) -> Move {
        self.is_inline = true;
        self.is_trusted = false;
        self.inline_runs = 0;
        self.begin_streak();
        Move::Inline
    }

    fn send_back(&mut self) -> Move {
        self.is_inline = false;
        self.begin_streak();
        // Perhaps by mistake: the next run tells.
        self.not_long = STREAK_LIKELY;
        Move::Staged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LONG: Duration = Duration::from_millis(30);

    fn prove(rule: &mut Rule) {
        rule.yielded();
        assert!(rule.is_inline());
    }

    #[test]
    fn the_longest_streak_is_bounded() {
        let mut rule = Rule::default();
        for _ in 0..40 {
            let needed = rule.needed();
            for _ in 1..needed {
                assert_eq!(rule.record(SHORT_RUN), None);
            }
            assert_eq!(rule.record(SHORT_RUN), Some(Move::Inline));
            assert_eq!(rule.record(LONG_RUN), None);
            assert_eq!(rule.stalled(), Some(Move::Staged));
            assert_eq!(rule.stalled(), None);
        }
        assert_eq!(rule.needed(), STREAK_MAX);
    }

    #[test]
    fn a_streak_may_have_runs_over_the_mean_and_no_long_one() {
        let record = |rule: &mut Rule, runs: [Duration; 2]| {
            let moves: Vec<_> = (0..STREAK_FIRST / 2)
                .flat_map(|_| runs.map(|poll_time| rule.record(poll_time)))
                .flatten()
                .collect();
            moves
        };
        let (tiny, middling) = (Duration::ZERO, Duration::from_micros(500));
        assert_eq!(
            record(&mut Rule::default(), [tiny, middling]),
            [Move::Inline]
        );
        let mut above = Rule::default();
        assert_eq!(record(&mut above, [SHORT_RUN, middling]), []);
        assert_eq!(
            record(&mut above, [tiny, tiny]),
            [Move::Inline],
            "what was before is forgotten"
        );
        assert_eq!(record(&mut Rule::default(), [tiny, LONG]), []);
    }

    #[test]
    fn bounds_may_be_higher() {
        let mut rule = Rule::with_short_run(Duration::from_hours(1));
        for _ in 1..STREAK_FIRST {
            assert_eq!(rule.record(Duration::from_hours(1)), None);
        }
        assert_eq!(rule.record(Duration::from_hours(1)), Some(Move::Inline));
        assert_eq!(rule.record(Duration::from_hours(4)), None);
        assert_eq!(rule.record(Duration::from_hours(5)), Some(Move::Staged));
    }

    #[test]
    fn one_long_run_of_a_proven_route_is_forgiven_and_two_are_not() {
        let mut rule = Rule::default();
        prove(&mut rule);
        assert_eq!(rule.record(LONG), None);
        rule.ran_inline(PROVEN_RUNS - 1);
        assert_eq!(rule.record(LONG), Some(Move::Staged));
        assert_eq!(rule.needed(), 2 * STREAK_FIRST);
    }

    #[test]
    fn a_proven_route_that_stalls_is_staged_at_once_and_returns_after_eight_runs() {
        let mut rule = Rule::default();
        prove(&mut rule);
        assert_eq!(rule.stalled(), Some(Move::Staged));
        assert!(rule.is_likely_short());
        for _ in 1..STREAK_LIKELY {
            assert_eq!(rule.record(LONG_RUN), None);
        }
        assert_eq!(rule.record(LONG_RUN), Some(Move::Inline));
        rule.ran_inline(PROVEN_RUNS - 1);
        assert_eq!(rule.stalled(), Some(Move::Staged));
        assert_eq!(rule.needed(), 2 * STREAK_FIRST, "so soon after the first");
    }

    #[test]
    fn a_proven_route_that_stalls_and_is_long_on_the_stage_is_trusted_no_more() {
        let mut rule = Rule::default();
        prove(&mut rule);
        rule.stalled();
        assert_eq!(rule.record(LONG), None);
        assert_eq!(rule.needed(), 2 * STREAK_FIRST);
        assert!(!rule.is_likely_short());
    }

    #[test]
    fn a_pinned_route_stays_staged() {
        let mut rule = Rule::default();
        prove(&mut rule);
        assert_eq!(rule.pin(), Some(Move::Staged));
        assert_eq!(rule.pin(), None);
        for _ in 0..10 * STREAK_FIRST {
            assert_eq!(rule.record(Duration::ZERO), None);
        }
        assert_eq!(rule.yielded(), None);
        assert!(rule.is_pinned() && rule.is_likely_short());
    }

    #[test]
    fn a_route_that_was_sent_back_is_likely_short_until_it_is_long_again() {
        let mut rule = Rule::default();
        rule.yielded();
        assert_eq!(rule.stalled(), Some(Move::Staged));
        assert!(rule.is_likely_short());
        rule.record(2 * LONG_RUN);
        assert!(!rule.is_likely_short());
    }

    #[test]
    fn a_route_that_was_sent_back_does_not_yield() {
        let mut rule = Rule::default();
        assert_eq!(rule.yielded(), Some(Move::Inline));
        assert_eq!(rule.yielded(), None);
        assert_eq!(rule.record(LONG), None, "it is forgiven once");
        assert_eq!(rule.record(LONG), Some(Move::Staged));
        assert_eq!(rule.yielded(), None);
    }

    #[test]
    fn eight_runs_that_are_not_long_make_it_likely_short_and_a_long_one_ends_that() {
        let mut rule = Rule::default();
        for _ in 0..STREAK_LIKELY {
            assert!(!rule.is_likely_short());
            rule.record(LONG_RUN);
        }
        assert!(rule.is_likely_short());
        rule.record(2 * LONG_RUN);
        assert!(!rule.is_likely_short());
    }

    /// The moves and long inline runs of a route, and the number of its inline runs.
    #[derive(Debug, Default)]
    struct Life {
        runs: u64,
        inline_runs: u64,
        inline_long: u64,
        moves: u64,
    }

    /// Runs a route that is long once in `period` runs, at random; if it stalls, the watchdog sees
    /// it.
    fn live(rule: &mut Rule, runs: u64, period: u64, stalls: bool, random: &mut u64) -> Life {
        let mut life = Life::default();
        for _ in 0..runs {
            // An LCG of Knuth's; its upper bits are random enough.
            *random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let is_long = (*random >> 33).is_multiple_of(period);
            let is_inline = rule.is_inline();
            life.runs += 1;
            life.inline_runs += u64::from(is_inline);
            life.inline_long += u64::from(is_inline && is_long);
            let moved = if is_long && is_inline && stalls {
                rule.stalled()
            } else {
                rule.record(if is_long { LONG } else { SHORT_RUN })
            };
            life.moves += u64::from(moved.is_some());
        }
        life
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn long_once_in_100_runs_ends_staged(mut random: u64, stalls: bool) {
            let mut rule = Rule::default();
            let first = live(&mut rule, 200_000, 100, stalls, &mut random);
            prop_assert!(first.inline_long <= 30, "{first:?}");
            let later = live(&mut rule, 200_000, 100, stalls, &mut random);
            prop_assert!(later.inline_long <= 4, "{later:?}");
            prop_assert!(later.inline_runs * 100 <= later.runs, "{later:?}");
        }

        #[test]
        fn long_once_in_10_000_runs_stays_inline(mut random: u64, stalls: bool) {
            let mut rule = Rule::default();
            let life = live(&mut rule, 1_000_000, 10_000, stalls, &mut random);
            prop_assert!(life.inline_runs * 100 >= life.runs * 98, "{life:?}");
            prop_assert!(rule.needed() <= 64 * STREAK_FIRST, "{rule:?}");
        }

        /// Before its n-th move inline a route that is never proven has had 64 * 2^(n-1) runs
        /// without a long one since it was sent back, and it is sent back by long runs only.
        #[test]
        fn it_never_flaps_faster_than_the_rule(
            runs in prop::collection::vec((0..2_000_u64, 1..200_u32, any::<bool>()), 1..200),
        ) {
            let (mut rule, mut streak, mut moves_inline, mut is_inline, mut inline_runs) =
                (Rule::default(), 0_u32, 0_u32, false, 0);
            for (micros, times, stalls) in runs {
                let poll_time = Duration::from_micros(micros);
                for _ in 0..times {
                    if is_inline && inline_runs == PROVEN_RUNS - 1 {
                        rule.stalled();
                        (is_inline, streak, inline_runs) = (false, 0, 0);
                    }
                    inline_runs += u64::from(is_inline);
                    streak = if poll_time <= LONG_RUN { streak + 1 } else { 0 };
                    match rule.record(poll_time) {
                        Some(Move::Inline) => {
                            prop_assert!(!is_inline);
                            prop_assert!(streak >= STREAK_FIRST << moves_inline.min(10));
                            moves_inline += 1;
                            (is_inline, inline_runs) = (true, 0);
                        }
                        Some(Move::Staged) => {
                            prop_assert!(is_inline && poll_time > LONG_RUN);
                            (is_inline, streak) = (false, 0);
                        }
                        None => prop_assert!(!is_inline || poll_time <= LONG_RUN),
                    }
                }
                if stalls && rule.stalled().is_some() {
                    prop_assert!(is_inline);
                    (is_inline, streak) = (false, 0);
                }
            }
        }
    }
}
