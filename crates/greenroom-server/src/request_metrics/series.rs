use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::labels::{Labels, METHODS};
use super::shown::REQUEST_SECONDS;

/// The counts of one combination of labels on one loop. Only the loop's thread writes them, so that
/// no addition has to be atomic; others may see a request in some of them and not yet in the rest.
#[derive(Debug, Default)]
pub(super) struct Counted {
    /// The requests that took at most as long as the bound of the same index, and those that took
    /// longer.
    buckets: [AtomicU64; REQUEST_SECONDS.len() + 1],
    nanos: AtomicU64,
}

impl Counted {
    pub(super) fn add(&self, taken: Duration) {
        let seconds = taken.as_secs_f64();
        let at = REQUEST_SECONDS.iter().position(|bound| seconds <= *bound);
        raise(&self.buckets[at.unwrap_or(REQUEST_SECONDS.len())], 1);
        let nanos = u64::try_from(taken.as_nanos()).unwrap_or(u64::MAX);
        raise(&self.nanos, nanos);
    }

    pub(super) fn buckets(&self) -> [u64; REQUEST_SECONDS.len() + 1] {
        std::array::from_fn(|index| self.buckets[index].load(Ordering::Relaxed))
    }

    pub(super) fn sum(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }
}

/// The requests of a loop that are under way, by method and scheme. Only its thread writes them.
#[derive(Debug, Default)]
pub(super) struct Active([AtomicU64; 2 * METHODS.len()]);

impl Active {
    pub(super) fn raise(&self, labels: &Labels) {
        raise(&self.0[labels.active_index()], 1);
    }

    pub(super) fn lower(&self, labels: &Labels) {
        raise(&self.0[labels.active_index()], u64::MAX);
    }

    pub(super) fn of(&self, index: usize) -> u64 {
        self.0[index].load(Ordering::Relaxed)
    }
}

/// Adds, on the only thread that writes.
fn raise(count: &AtomicU64, by: u64) {
    let count_now = count.load(Ordering::Relaxed);
    count.store(count_now.wrapping_add(by), Ordering::Relaxed);
}
