//! The delays before restarts.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};

/// The rest before the second restart in a row; the first is at once.
const REST_MIN: Duration = Duration::from_millis(100);

/// The longest rest.
const REST_MAX: Duration = Duration::from_secs(10);

/// The time in health after which the next end counts as the first again.
pub(super) const HEALTHY_AFTER: Duration = Duration::from_secs(10);

/// The rests before restarts in a row.
#[derive(Default)]
pub(super) struct Backoff {
    rests: Option<ExponentialBackoff>,
}

impl Backoff {
    /// Starts again with no rest.
    pub(super) fn reset(&mut self) {
        self.rests = None;
    }

    /// Returns the rest before the next restart.
    pub(super) fn rest(&mut self) -> Duration {
        if let Some(rests) = &mut self.rests {
            return rests.next().unwrap_or(REST_MAX);
        }
        self.rests = Some(rests());
        Duration::ZERO
    }
}

fn rests() -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(REST_MIN)
        .with_max_delay(REST_MAX)
        .with_factor(2.0)
        .without_max_times()
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_double_from_nothing_to_the_longest_and_begin_anew_after_health() {
        let mut backoff = Backoff::default();
        let rests: Vec<_> = (0..10).map(|_| backoff.rest().as_millis()).collect();
        assert_eq!(
            rests,
            [0, 100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]
        );
        backoff.reset();
        assert_eq!(backoff.rest(), Duration::ZERO);
    }
}
