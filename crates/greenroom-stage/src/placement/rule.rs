use std::time::Duration;

/// A run that is busy for no longer than this is short.
pub const SHORT_RUN: Duration = Duration::from_micros(100);

/// A run that is busy for longer than this sends its route back to the stage.
pub const LONG_RUN: Duration = Duration::from_millis(1);

/// So many short runs in a row make a new route inline.
pub const STREAK_FIRST: u32 = 64;

/// However often a route was sent back, so many short runs in a row suffice.
pub const STREAK_MAX: u32 = 65_536;

/// After so many runs in a row of at most [`LONG_RUN`] a staged route is likely short: its runs go
/// before other new work of the stage, and so it can prove itself while the stage is flooded. So
/// many requests of a new route go before others as well, because nothing is known of it.
pub const STREAK_LIKELY: u32 = 8;

/// Where a route's runs take place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// From now on on the loop itself.
    Inline,
    /// From now on on the stage.
    Staged,
}

/// When a route moves: safe first, inline when proven short, back at the first sign of length.
///
/// - A route begins staged. [`STREAK_FIRST`] runs in a row of at most [`SHORT_RUN`] make it inline.
/// - One run over [`LONG_RUN`], or a stall that the watchdog sees, stages it again.
/// - Each time it is sent back, the next streak must be twice as long: 64, 128, 256 … 65,536.
/// - After [`STREAK_LIKELY`] runs in a row that were not long its staged runs go before other new
///   work.
/// - Runs between the two bounds end a streak and change nothing for a route that is inline.
///
/// # Worked numbers
///
/// At 1,000 short requests a second a new route is inline after 64 ms. One that is long once in
/// 100 runs passes a streak of 64 with a chance of 0.99^64 = 53 %, of 128 with 28 %, of 256 with
/// 7.6 %, of 512 with 0.6 %: it stalls a loop a few times in its life and then stays staged.
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
/// assert_eq!(rule.record(long), Some(Move::Staged));
/// for _ in 0..127 {
///     assert_eq!(rule.record(short), None);
/// }
/// assert_eq!(rule.record(short), Some(Move::Inline));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    is_inline: bool,
    streak: u32,
    needed: u32,
    /// Runs since the last long one, as far as they matter.
    not_long: u32,
}

impl Default for Rule {
    fn default() -> Self {
        Self {
            is_inline: false,
            streak: 0,
            needed: STREAK_FIRST,
            not_long: 0,
        }
    }
}

impl Rule {
    /// Takes a finished run into account, wherever it took place. A long one that began on the
    /// stage counts against a route that has become inline since.
    pub fn record(&mut self, busy: Duration) -> Option<Move> {
        self.not_long = if busy <= LONG_RUN {
            (self.not_long + 1).min(STREAK_LIKELY)
        } else {
            0
        };
        match (self.is_inline, busy) {
            (true, busy) if busy > LONG_RUN => Some(self.send_back()),
            (true, _) => None,
            (false, busy) if busy <= SHORT_RUN => self.prolong(),
            (false, _) => {
                self.streak = 0;
                None
            }
        }
    }

    /// The watchdog sees a run that holds up a loop, and has not ended yet.
    pub fn stalled(&mut self) -> Option<Move> {
        self.is_inline.then(|| self.send_back())
    }

    /// What runs here is placed by somebody further in, and only comes through. A route that was
    /// never sent back is inline at once.
    pub fn yielded(&mut self) -> Option<Move> {
        let may_yield = !self.is_inline && self.needed == STREAK_FIRST;
        may_yield.then(|| self.bring_inline())
    }

    /// Whether no run has been long of late: see [`STREAK_LIKELY`].
    #[must_use]
    pub fn is_likely_short(&self) -> bool {
        self.not_long >= STREAK_LIKELY
    }

    /// Whether the route has proven short, and was not sent back since.
    #[must_use]
    pub fn is_inline(&self) -> bool {
        self.is_inline
    }

    /// How many short runs in a row a staged route has had; 0 for one that is inline.
    #[must_use]
    pub fn streak(&self) -> u32 {
        self.streak
    }

    /// How many short runs in a row the next move inline takes.
    #[must_use]
    pub fn needed(&self) -> u32 {
        self.needed
    }

    fn prolong(&mut self) -> Option<Move> {
        self.streak += 1;
        (self.streak >= self.needed).then(|| self.bring_inline())
    }

    fn bring_inline(&mut self) -> Move {
        self.is_inline = true;
        self.streak = 0;
        Move::Inline
    }

    fn send_back(&mut self) -> Move {
        self.is_inline = false;
        self.streak = 0;
        // Perhaps by mistake: the next run tells.
        self.not_long = STREAK_LIKELY;
        self.needed = (self.needed * 2).min(STREAK_MAX);
        Move::Staged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        assert_eq!(rule.record(LONG_RUN + SHORT_RUN), Some(Move::Staged));
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

    proptest! {
        /// Whatever comes: before its n-th move inline a route has had 64 * 2^(n-1) short runs and
        /// nothing else since it was sent back, and it is sent back by long runs only.
        #[test]
        fn it_never_flaps_faster_than_the_rule(
            runs in prop::collection::vec((0..2_000_u64, 1..200_u32, any::<bool>()), 1..200),
        ) {
            let (mut rule, mut streak, mut moves_inline, mut is_inline) =
                (Rule::default(), 0_u32, 0_u32, false);
            for (micros, times, stalls) in runs {
                let busy = Duration::from_micros(micros);
                for _ in 0..times {
                    streak = if busy <= SHORT_RUN { streak + 1 } else { 0 };
                    match rule.record(busy) {
                        Some(Move::Inline) => {
                            prop_assert!(!is_inline);
                            prop_assert!(streak >= STREAK_FIRST << moves_inline.min(10));
                            moves_inline += 1;
                            is_inline = true;
                        }
                        Some(Move::Staged) => {
                            prop_assert!(is_inline && busy > LONG_RUN);
                            (is_inline, streak) = (false, 0);
                        }
                        None => prop_assert!(!is_inline || busy <= LONG_RUN),
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
