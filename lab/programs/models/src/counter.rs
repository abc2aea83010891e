//! The state that all requests share.

use parking_lot::Mutex;

/// A counter behind a lock.
#[derive(Debug, Default)]
pub struct Counter {
    value: Mutex<u64>,
}

impl Counter {
    /// Adds one, and returns the sum.
    pub fn add(&self) -> u64 {
        let mut value = self.value.lock();
        *value += 1;
        *value
    }
}
