use std::time::Duration;

use tokio::time::Instant;

use super::lag::Standing;
use crate::Limits;

/// A new connection is late after so many times `loop_lag_max`: 40 ms with 20 ms.
const WAIT_MAX_LAGS: u32 = 2;

/// Decides when new connections have waited too long to be accepted.
///
/// The system's queue has room for thousands. Of a server that has more to do than it can, each of
/// them is accepted so late that most have given up, and what is done for them is lost. So once new
/// connections have been late for `loop_lag_standing`, the late ones are rejected: that is cheap,
/// and those behind them are served in time. It ends when nobody waits, or the first for less than
/// half as long. If they are late again within `loop_lag_standing` after that, the second in a row
/// is rejected at once.
#[derive(Debug)]
pub(super) struct AcceptPolicy {
    wait_max: Duration,
    standing: Standing,
    was_late: bool,
}

impl AcceptPolicy {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            wait_max: limits.loop_lag_max.saturating_mul(WAIT_MAX_LAGS),
            standing: Standing::after(limits.loop_lag_standing),
            was_late: false,
        }
    }

    /// Notes that no connection waits any more.
    pub(super) fn note_empty_queue(&mut self, now: Instant) {
        self.standing.look(false, now);
        self.was_late = false;
    }

    /// Returns `true` if a connection that has waited so long, first in the queue, is rejected.
    pub(super) fn is_rejected(&mut self, waited: Duration, now: Instant) -> bool {
        if waited <= self.wait_max {
            if waited <= self.wait_max / 2 {
                self.note_empty_queue(now);
            }
            return false;
        }
        self.standing.look(true, now);
        let was_late = std::mem::replace(&mut self.was_late, true);
        let is_rejected = was_late && (self.standing.is_armed(now) || self.standing.stands(now));
        if is_rejected {
            self.standing.shed(now);
        }
        is_rejected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decides on connections that come at these milliseconds and have waited so many.
    fn rejected(connections: &[(u64, u64)]) -> Vec<bool> {
        let start = Instant::now();
        let mut rule = AcceptPolicy::new(&Limits::default());
        connections
            .iter()
            .map(|&(at, waited)| {
                let now = start + Duration::from_millis(at);
                rule.is_rejected(Duration::from_millis(waited), now)
            })
            .collect()
    }

    #[test]
    fn late_connections_are_rejected_once_they_have_been_late_for_a_second() {
        let connections = [
            (0, 41),
            (500, 90),
            (999, 90),
            (1_000, 41),
            (1_010, 40),
            (1_020, 41),
        ];
        let expected = [false, false, false, true, false, true];
        assert_eq!(rejected(&connections), expected);
    }

    #[test]
    fn one_that_has_hardly_waited_ends_the_interval() {
        let connections = [(0, 90), (900, 90), (910, 20), (1_000, 90), (1_999, 90)];
        assert!(!rejected(&connections).contains(&true));
    }

    #[test]
    fn one_late_again_soon_after_is_rejected_at_the_second() {
        let connections = [
            (0, 90),
            (1_000, 90),
            (1_010, 20),
            (1_500, 90),
            (1_510, 90),
            (1_520, 20),
            (2_510, 90),
            (2_520, 90),
            (3_510, 90),
        ];
        let expected = [false, true, false, false, true, false, false, false, true];
        assert_eq!(rejected(&connections), expected);
    }

    #[test]
    fn a_loop_that_stood_still_once_rejects_none() {
        let connections: Vec<_> = (0..200).map(|each| (each * 4, 5_000 - each)).collect();
        assert!(!rejected(&connections).contains(&true));
    }

    #[test]
    fn a_burst_that_is_through_within_a_second_rejects_none() {
        let connections: Vec<_> = (0..999).map(|each| (each, each)).collect();
        assert!(!rejected(&connections).contains(&true));
    }
}
