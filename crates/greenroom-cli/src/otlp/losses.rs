//! Spans that were lost: counted, and told in the log now and then.

use std::time::{Duration, Instant};

/// The interval in which the log tells of losses that go on.
const INTERVAL: Duration = Duration::from_mins(1);

/// Counts spans that were lost.
pub(super) fn count(reason: &'static str, spans: u64) {
    metrics::counter!("greenroom_trace_spans_dropped_total", "reason" => reason).increment(spans);
}

/// The losses of which the log has not told.
#[derive(Debug, Default)]
pub(super) struct Losses {
    spans: u64,
    told: Option<Instant>,
}

impl Losses {
    /// Adds losses, and tells of them, at once or with later ones.
    pub(super) fn add(&mut self, spans: u64, reason: &str) {
        self.spans += spans;
        if let Some(lost) = self.due(Instant::now()) {
            tracing::warn!(lost, reason, "spans were lost");
        }
    }

    /// Returns the number to tell of now.
    fn due(&mut self, now: Instant) -> Option<u64> {
        let is_soon = self.told.is_some_and(|told| now - told < INTERVAL);
        if is_soon || self.spans == 0 {
            return None;
        }
        self.told = Some(now);
        Some(std::mem::take(&mut self.spans))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_that_go_on_are_told_in_intervals() {
        let (mut losses, begin) = (Losses::default(), Instant::now());
        assert_eq!(losses.due(begin), None);
        losses.spans = 3;
        assert_eq!(losses.due(begin), Some(3));
        losses.spans = 5;
        assert_eq!(losses.due(begin + INTERVAL / 2), None);
        losses.spans += 1;
        assert_eq!(losses.due(begin + INTERVAL), Some(6));
        assert_eq!(losses.due(begin + INTERVAL * 2), None);
    }
}
