use std::time::{Duration, Instant};

use greenroom_stage::{Reason, Sheds};

/// The interval between two log lines about rejections.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// The rejections since the last log line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rejections {
    pub(crate) sheds: Sheds,
    /// The longest wait that was predicted for one of them.
    pub(crate) predicted: Duration,
}

/// Collects rejections until they are logged.
#[derive(Debug, Default)]
pub(super) struct Unlogged {
    rejections: Rejections,
    logged_at: Option<Instant>,
}

impl Unlogged {
    pub(super) fn add(&mut self, reason: Reason, predicted: Duration) {
        count(&mut self.rejections.sheds, reason);
        self.rejections.predicted = self.rejections.predicted.max(predicted);
    }

    /// Returns the rejections to log now: the first ones at once, then at most every 10 s those
    /// since.
    pub(super) fn take(&mut self, now: Instant) -> Option<Rejections> {
        let is_due = self
            .logged_at
            .is_none_or(|logged_at| now >= logged_at + LOG_INTERVAL);
        if !is_due || self.rejections.sheds.total() == 0 {
            return None;
        }
        self.logged_at = Some(now);
        Some(std::mem::take(&mut self.rejections))
    }
}

pub(super) fn count(sheds: &mut Sheds, reason: Reason) {
    match reason {
        Reason::QueueFull => sheds.queue_full += 1,
        Reason::Late => sheds.late += 1,
        Reason::Wait => sheds.wait += 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_at_once_and_then_at_most_every_ten_seconds() {
        let (mut unlogged, begin) = (Unlogged::default(), Instant::now());
        let mut told = Vec::new();
        for tick in 0..120 {
            let now = begin + Duration::from_millis(250) * tick;
            // Until after the second time.
            if tick <= 41 {
                unlogged.add(Reason::Wait, Duration::from_secs(12));
            }
            if let Some(rejections) = unlogged.take(now) {
                told.push((
                    tick,
                    rejections.sheds.total(),
                    rejections.predicted.as_secs(),
                ));
            }
        }
        assert_eq!(told, [(0, 1, 12), (40, 40, 12), (80, 1, 12)]);
    }
}
