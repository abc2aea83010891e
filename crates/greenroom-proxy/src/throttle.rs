use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The time between two warnings of the same kind.
const INTERVAL: Duration = Duration::from_secs(10);

/// Counts events, and says at most every 10 s that it is time for a warning of them.
#[derive(Debug, Default)]
pub(crate) struct Throttle(Mutex<Since>);

#[derive(Debug, Default)]
struct Since {
    warned: Option<Instant>,
    count: u64,
}

impl Throttle {
    /// Counts an event; returns the number since the last warning if it is time for one.
    pub(crate) fn count(&self) -> Option<u64> {
        self.count_at(Instant::now())
    }

    fn count_at(&self, now: Instant) -> Option<u64> {
        let mut since = self.0.lock();
        since.count += 1;
        if since.warned.is_some_and(|warned| now < warned + INTERVAL) {
            return None;
        }
        since.warned = Some(now);
        Some(std::mem::take(&mut since.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_counts_what_came_since_the_last() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        assert_eq!(throttle.count_at(now), Some(1));
        assert_eq!(throttle.count_at(now), None);
        assert_eq!(throttle.count_at(now + INTERVAL), Some(2));
    }
}
