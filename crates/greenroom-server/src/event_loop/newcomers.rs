use std::time::Duration;

use tokio::time::Instant;

/// A newcomer is late after so many times `loop_lag_max`: 40 ms with 20 ms.
const WAIT_MAX_LAGS: u32 = 2;
/// Newcomers may be late for so many times `loop_lag_max`, as they are for a moment after anything
/// that held up the loop: 100 ms with 20 ms.
const PATIENCE_LAGS: u32 = 5;

/// Decides when those who wait to be accepted wait too long.
///
/// The system's queue has room for thousands. Of a server that has more to do than it can, each of
/// them is accepted so late that most have given up, and what is done for them is lost. So once
/// newcomers have been late for some time, the late ones are refused: that is cheap, and those behind
/// them are served in time. It ends when nobody waits, or the first for less than half as long.
#[derive(Debug)]
pub(super) struct Newcomers {
    wait_max: Duration,
    patience: Duration,
    late_since: Option<Instant>,
}

impl Newcomers {
    pub(super) fn new(lag_max: Duration) -> Self {
        Self {
            wait_max: lag_max.saturating_mul(WAIT_MAX_LAGS),
            patience: lag_max.saturating_mul(PATIENCE_LAGS),
            late_since: None,
        }
    }

    /// Nobody waits any more.
    pub(super) fn are_through(&mut self) {
        self.late_since = None;
    }

    /// Whether one that has waited so long, and was the first in the queue, is refused.
    pub(super) fn is_refused(&mut self, waited: Duration, now: Instant) -> bool {
        if waited <= self.wait_max {
            if waited <= self.wait_max / 2 {
                self.late_since = None;
            }
            return false;
        }
        let since = *self.late_since.get_or_insert(now);
        now - since >= self.patience
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether newcomers are refused who come at these milliseconds and have waited so many.
    fn refused(newcomers: &[(u64, u64)]) -> Vec<bool> {
        let start = Instant::now();
        let mut rule = Newcomers::new(Duration::from_millis(20));
        newcomers
            .iter()
            .map(|&(at, waited)| {
                let now = start + Duration::from_millis(at);
                rule.is_refused(Duration::from_millis(waited), now)
            })
            .collect()
    }

    #[test]
    fn who_is_late_is_refused_once_newcomers_have_been_late_for_100_ms() {
        let newcomers = [(0, 41), (50, 90), (99, 90), (100, 41), (110, 40), (120, 41)];
        let expected = [false, false, false, true, false, true];
        assert_eq!(refused(&newcomers), expected);
    }

    #[test]
    fn one_that_has_hardly_waited_ends_it() {
        let newcomers = [
            (0, 90),
            (100, 90),
            (110, 20),
            (120, 90),
            (219, 90),
            (220, 90),
        ];
        let expected = [false, true, false, false, false, true];
        assert_eq!(refused(&newcomers), expected);
    }

    #[test]
    fn a_loop_that_stood_still_once_refuses_nobody() {
        let newcomers: Vec<_> = (0..20).map(|each| (each * 4, 1_000 - each)).collect();
        assert!(!refused(&newcomers).contains(&true));
    }
}
