//! Spans that were lost: counted, and told in the log now and then.

use std::time::{Duration, Instant};

/// The interval in which the log tells of losses that go on.
const INTERVAL: Duration = Duration::from_mins(1);

/// Counts requests whose spans were lost.
pub(super) fn count(reason: &'static str, requests: u64) {
    metrics::counter!("greenroom_trace_spans_dropped_total", "reason" => reason)
        .increment(requests);
}

/// The losses of which the log has not told.
#[derive(Debug, Default)]
pub(super) struct Losses {
    requests: u64,
    told: Option<Instant>,
}

impl Losses {
    /// Adds losses, and tells of them, at once or with later ones.
    pub(super) fn add(&mut self, requests: u64, reason: &str) {
        self.requests += requests;
        if let Some(lost) = self.due(Instant::now()) {
            tracing::warn!(lost, reason, "spans were lost");
        }
    }

    /// Returns the number to tell of now.
    fn due(&mut self, now: Instant) -> Option<u64> {
        let is_soon = self.told.is_some_and(|told| now - told < INTERVAL);
        if is_soon || self.requests == 0 {
            return None;
        }
        self.told = Some(now);
        Some(std::mem::take(&mut self.requests))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_that_go_on_are_told_in_intervals() {
        let (mut losses, begin) = (Losses::default(), Instant::now());
        assert_eq!(losses.due(begin), None);
        losses.requests = 3;
        assert_eq!(losses.due(begin), Some(3));
        losses.requests = 5;
        assert_eq!(losses.due(begin + INTERVAL / 2), None);
        losses.requests += 1;
        assert_eq!(losses.due(begin + INTERVAL), Some(6));
        assert_eq!(losses.due(begin + INTERVAL * 2), None);
    }
}
