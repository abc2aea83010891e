//! The orders of a group that have brought no certificate, which are kept over restarts.

use std::time::{Duration, SystemTime};

/// Most orders of a group that have brought no certificate within the first four waits of
/// [`Limits`](crate::Limits), which are an hour by default: 5, as many failed validations of a name
/// as Let's Encrypt allows. Restarts change nothing about it.
pub const FAILED_ORDERS_MAX: usize = 5;

/// The times at which the last ones began. An order is one of them until its certificate is saved,
/// so that one which ends with its process counts too.
#[derive(Debug, Default)]
pub(crate) struct FailedOrders(Vec<SystemTime>);

impl FailedOrders {
    pub(crate) fn new(began: Vec<SystemTime>) -> Self {
        Self(began)
    }

    /// Returns the times at which they began.
    pub(crate) fn began(&self) -> &[SystemTime] {
        &self.0
    }

    /// Adds an order that begins now, and leaves those out that are too many to matter.
    pub(crate) fn add(&mut self, now: SystemTime) {
        self.0.push(now);
        let surplus = self.0.len().saturating_sub(FAILED_ORDERS_MAX);
        self.0.drain(..surplus);
    }

    /// Returns the time until so many further orders may begin, of which those that began within
    /// `window` are too many. Those of a time that is still to come do not count: the wall clock
    /// was set back since.
    pub(crate) fn pause(&self, further: usize, window: Duration, now: SystemTime) -> Duration {
        let age = |began: &SystemTime| now.duration_since(*began).ok();
        let ages = self.0.iter().filter_map(age).filter(|age| *age < window);
        let mut ages: Vec<_> = ages.collect();
        ages.sort_unstable();
        // Before the last one may begin, all but so many of the youngest must be out of the window.
        let may_stay = FAILED_ORDERS_MAX.saturating_sub(further);
        ages.get(may_stay)
            .map_or(Duration::ZERO, |age| window.saturating_sub(*age))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    const HOUR: Duration = Duration::from_hours(1);

    fn minute(minute: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_mins(1_000_000 + minute)
    }

    #[test]
    fn at_most_five_begin_within_the_window() {
        let mut orders = FailedOrders::default();
        let pause = |orders: &FailedOrders, further, at| {
            let pause = orders.pause(further, HOUR, minute(at));
            pause.as_secs() / 60
        };
        for at in [0, 10, 20, 30] {
            assert_eq!(pause(&orders, 1, at), 0);
            orders.add(minute(at));
        }
        // A fifth may begin at once, but not two, as an attempt with both challenges needs.
        assert_eq!((pause(&orders, 1, 40), pause(&orders, 2, 40)), (0, 20));
        orders.add(minute(40));
        assert_eq!((pause(&orders, 1, 40), pause(&orders, 2, 40)), (20, 30));
        assert_eq!((pause(&orders, 1, 60), pause(&orders, 2, 60)), (0, 10));
        orders.add(minute(60));
        assert_eq!(orders.began().len(), FAILED_ORDERS_MAX);
        // The wall clock is set back.
        assert_eq!((pause(&orders, 1, 5), pause(&orders, 2, 5)), (0, 0));
    }
}
