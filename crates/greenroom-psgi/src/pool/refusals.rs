use std::time::{Duration, Instant};

use greenroom_stage::{Reason, Sheds};

/// The interval between two log lines about rejections.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// The rejections since the last log line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Refusals {
    pub(crate) sheds: Sheds,
    /// The longest wait that was predicted for one of them.
    pub(crate) predicted: Duration,
}

/// Collects rejections until they are logged.
#[derive(Debug, Default)]
pub(super) struct Untold {
    refusals: Refusals,
    told: Option<Instant>,
}

impl Untold {
    pub(super) fn add(&mut self, reason: Reason, predicted: Duration) {
        count(&mut self.refusals.sheds, reason);
        self.refusals.predicted = self.refusals.predicted.max(predicted);
    }

    /// Returns the rejections to log now: the first ones at once, then at most every 10 s those
    /// since.
    pub(super) fn take(&mut self, now: Instant) -> Option<Refusals> {
        let is_due = self.told.is_none_or(|told| now >= told + TOLD_EVERY);
        if !is_due || self.refusals.sheds.total() == 0 {
            return None;
        }
        self.told = Some(now);
        Some(std::mem::take(&mut self.refusals))
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
        let (mut untold, begin) = (Untold::default(), Instant::now());
        let mut told = Vec::new();
        for tick in 0..120 {
            let now = begin + Duration::from_millis(250) * tick;
            // Until after the second time.
            if tick <= 41 {
                untold.add(Reason::Wait, Duration::from_secs(12));
            }
            if let Some(refusals) = untold.take(now) {
                told.push((tick, refusals.sheds.total(), refusals.predicted.as_secs()));
            }
        }
        assert_eq!(told, [(0, 1, 12), (40, 40, 12), (80, 1, 12)]);
    }
}
