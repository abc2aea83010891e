use std::time::{Duration, Instant};

use super::decision::promised;

/// The multiple of `queue_wait_max` that may be waited in a burst, and for which predicted waits
/// must have been too long, or short enough, before that counts as the steady state.
pub const BURST_FACTOR: u32 = 2;

/// Tells a queue that stands from a burst that drains by itself, in the manner of `CoDel` (RFC
/// 8289): by whether waits were too long for a whole interval, not by how long they are at the
/// moment.
///
/// The target is `queue_wait_max`, the interval [`BURST_FACTOR`] times as long.
///
/// - A burst: until predicted waits were above the target for longer than the interval, a request
///   may wait for [`BURST_FACTOR`] times the target. The burst is over when none was above the
///   target for longer than the target.
/// - A standing queue: from then on it may wait for the target only, until none was above for
///   longer than the interval, or until the queue was [empty](Self::emptied).
///
/// One request whose wait is short ends neither: in a fair queue the wait of a polite client is
/// short while a flood stands.
///
/// # Worked numbers
///
/// The default of a stage, a target of 500 ms and so an interval of 1 s:
///
/// ```
/// use std::time::{Duration, Instant};
/// use greenroom_stage::admission::Standing;
///
/// let (start, ms) = (Instant::now(), Duration::from_millis);
/// let mut standing = Standing::new(ms(500));
/// // Thirty requests at once that compute for 50 ms each, on two threads: the last waits for
/// // 750 ms.
/// assert_eq!(standing.wait_max(start, ms(750)), ms(1_000));
/// assert_eq!(standing.wait_max(start + ms(400), ms(350)), ms(1_000)); // it drains
///
/// // More and more come: after a second of waits that are too long, the queue stands.
/// let flood = start + ms(2_000);
/// for after in [0, 400, 800, 1_000] {
///     assert_eq!(standing.wait_max(flood + ms(after), ms(900)), ms(1_000));
/// }
/// assert_eq!(standing.wait_max(flood + ms(1_001), ms(900)), ms(500));
///
/// // Some would wait for less, but others still for too long: the queue still stands.
/// assert_eq!(standing.wait_max(flood + ms(1_500), ms(400)), ms(500));
/// assert_eq!(standing.wait_max(flood + ms(1_900), ms(501)), ms(500));
///
/// // Nobody would have waited too long for more than a second: the next burst is one.
/// assert_eq!(standing.wait_max(flood + ms(2_901), ms(900)), ms(1_000));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    queue_wait_max: Duration,
    excess: Option<Excess>,
}

/// A time of predicted waits above the target.
#[derive(Clone, Copy, Debug)]
struct Excess {
    first: Instant,
    latest: Instant,
}

impl Standing {
    /// Creates the state before the first request.
    #[must_use]
    pub fn new(queue_wait_max: Duration) -> Self {
        Self {
            queue_wait_max,
            excess: None,
        }
    }

    /// Returns the longest wait allowed for a request that comes `now` and is predicted to wait for
    /// `predicted`.
    pub fn wait_max(&mut self, now: Instant, predicted: Duration) -> Duration {
        let over_after = if self.is_standing() {
            self.interval()
        } else {
            self.queue_wait_max
        };
        let latest = self.excess.map(|excess| excess.latest);
        if latest.is_some_and(|latest| now.saturating_duration_since(latest) > over_after) {
            self.excess = None;
        }
        // Compared with the promised part of the target, as in `admit`: else a queue that
        // rejections keep below the target would be taken for one that has drained.
        if predicted > promised(self.queue_wait_max) {
            let first = self.excess.map_or(now, |excess| excess.first);
            self.excess = Some(Excess { first, latest: now });
        }
        if self.is_standing() {
            self.queue_wait_max
        } else {
            self.interval()
        }
    }

    /// Records that nothing waits any more: the next request begins a new burst.
    pub fn emptied(&mut self) {
        self.excess = None;
    }

    /// True if the queue stands, as of the last request.
    #[must_use]
    pub fn is_standing(&self) -> bool {
        let excess = self.excess;
        let lasted = excess.map(|excess| excess.latest.saturating_duration_since(excess.first));
        lasted.is_some_and(|lasted| lasted > self.interval())
    }

    /// Returns the interval, as long as the wait that is allowed in a burst.
    fn interval(&self) -> Duration {
        self.queue_wait_max.saturating_mul(BURST_FACTOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);
    const TARGET: Duration = Duration::from_millis(500);

    #[test]
    fn a_burst_that_drains_within_the_interval_is_never_a_standing_queue() {
        let start = Instant::now();
        let mut standing = Standing::new(TARGET);
        for burst in 0..20 {
            let begun = start + burst * 3_000 * MS;
            for step in 0..100 {
                let now = begun + step * 10 * MS;
                let predicted = (1_000 - step * 10) * MS;
                assert_eq!(standing.wait_max(now, predicted), 2 * TARGET);
            }
        }
    }

    #[test]
    fn a_queue_that_stands_for_an_hour_is_held_to_the_target_for_it() {
        let start = Instant::now();
        let mut standing = Standing::new(TARGET);
        for step in 0..360_000 {
            let now = start + step * 10 * MS;
            let allowed = standing.wait_max(now, TARGET + MS);
            let is_burst = step * 10 <= 1_000;
            assert_eq!(allowed, if is_burst { 2 * TARGET } else { TARGET });
        }
    }

    #[test]
    fn a_polite_client_in_between_does_not_hide_a_flood() {
        let start = Instant::now();
        let mut standing = Standing::new(TARGET);
        for step in 0..=11 {
            let now = start + step * 100 * MS;
            standing.wait_max(now, 3 * TARGET);
            standing.wait_max(now, MS);
        }
        assert!(standing.is_standing());
    }

    #[test]
    fn after_a_rest_a_burst_is_a_burst_again_although_nobody_came_meanwhile() {
        let start = Instant::now();
        let mut standing = Standing::new(TARGET);
        for after in [0, 500, 1_000] {
            standing.wait_max(start + after * MS, 2 * TARGET);
        }
        assert_eq!(standing.wait_max(start + 1_001 * MS, 2 * TARGET), TARGET);
        let after = start + 2_002 * MS;
        assert_eq!(standing.wait_max(after, 2 * TARGET), 2 * TARGET);
        assert!(!standing.is_standing());
    }

    #[test]
    fn the_longest_target_does_not_overflow() {
        let mut standing = Standing::new(Duration::MAX);
        assert_eq!(standing.wait_max(Instant::now(), TARGET), Duration::MAX);
    }

    proptest! {
        #[test]
        fn what_is_allowed_is_the_target_or_a_burst_and_never_the_target_at_first(
            steps in prop::collection::vec((0..2_000_u32, 0..2_000_u32), 1..200),
        ) {
            let mut now = Instant::now();
            let mut standing = Standing::new(TARGET);
            let mut too_long_since = None;
            for (later, predicted) in steps {
                now += later * MS;
                let allowed = standing.wait_max(now, predicted * MS);
                prop_assert!(allowed == TARGET || allowed == 2 * TARGET);
                prop_assert_eq!(allowed == TARGET, standing.is_standing());
                if predicted * MS > promised(TARGET) {
                    too_long_since.get_or_insert(now);
                }
                let first = too_long_since.map(|since| now.saturating_duration_since(since));
                if allowed == TARGET {
                    prop_assert!(first.is_some_and(|first| first > 2 * TARGET));
                }
            }
        }
    }
}
