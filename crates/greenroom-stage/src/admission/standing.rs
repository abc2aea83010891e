use std::time::{Duration, Instant};

use super::decision::promised;

/// A burst may take so many times the wait that is allowed, and last for as long: with 500 ms, one
/// second. What is over within that time is no overload.
pub const BURST_FACTOR: u32 = 2;

/// Tells a queue that stands from a burst that drains by itself, in the manner of `CoDel` (RFC 8289):
/// by how long predicted waits have been over what is allowed, and not by how long one is.
///
/// - While they are not, or have been over it for less than [`BURST_FACTOR`] x `queue_wait_max`, new
///   work is let in that would wait for up to [`BURST_FACTOR`] x `queue_wait_max`.
/// - When they have been over it for that long, the queue stands: up to `queue_wait_max`.
/// - It stands until nobody was over it for that long, or until the queue was empty.
///
/// ```
/// use std::time::{Duration, Instant};
/// use greenroom_stage::admission::Standing;
///
/// let (start, ms) = (Instant::now(), Duration::from_millis);
/// let mut standing = Standing::new(ms(500));
/// assert_eq!(standing.wait_max(start, ms(700)), ms(1_000)); // a burst
/// assert_eq!(standing.wait_max(start + ms(999), ms(700)), ms(1_000));
/// assert_eq!(standing.wait_max(start + ms(1_000), ms(700)), ms(500)); // an overload
/// assert_eq!(standing.wait_max(start + ms(1_900), ms(700)), ms(500));
/// assert_eq!(standing.wait_max(start + ms(2_901), ms(700)), ms(1_000)); // another burst
/// standing.emptied();
/// assert_eq!(standing.wait_max(start + ms(3_902), ms(700)), ms(1_000));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    queue_wait_max: Duration,
    over: Option<Over>,
}

/// When a predicted wait was first and last over what is allowed.
#[derive(Clone, Copy, Debug)]
struct Over {
    first: Instant,
    last: Instant,
}

impl Standing {
    /// Of a queue in which work may wait for so long.
    #[must_use]
    pub fn new(queue_wait_max: Duration) -> Self {
        Self {
            queue_wait_max,
            over: None,
        }
    }

    /// For how long new work may wait for which so much is predicted.
    pub fn wait_max(&mut self, now: Instant, predicted: Duration) -> Duration {
        let interval = self.queue_wait_max.saturating_mul(BURST_FACTOR);
        if predicted <= promised(self.queue_wait_max) {
            return interval;
        }
        let recent = self.over.filter(|over| since(now, over.last) <= interval);
        let first = recent.map_or(now, |over| over.first);
        self.over = Some(Over { first, last: now });
        if since(now, first) >= interval {
            self.queue_wait_max
        } else {
            interval
        }
    }

    /// Nothing waits any more: whatever comes is a new burst.
    pub fn emptied(&mut self) {
        self.over = None;
    }
}

fn since(now: Instant, then: Instant) -> Duration {
    now.saturating_duration_since(then)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn who_waits_within_what_is_allowed_is_never_limited_to_less(
            asked in prop::collection::vec((0..3_000_u64, 0..3_000_u64), 1..100),
        ) {
            let allowed = Duration::from_millis(500);
            let (mut standing, mut now) = (Standing::new(allowed), Instant::now());
            for (later, predicted) in asked {
                now += Duration::from_millis(later);
                let predicted = Duration::from_millis(predicted);
                let limit = standing.wait_max(now, predicted);
                prop_assert!(limit == allowed || limit == allowed * BURST_FACTOR);
                prop_assert!(predicted > promised(allowed) || limit > allowed);
            }
        }
    }
}
