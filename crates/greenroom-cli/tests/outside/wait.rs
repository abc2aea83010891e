//! Waiting for a condition that becomes true by itself.

use std::thread;
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_millis(20);

/// Waits until `observe` returns something that `is_right` accepts.
///
/// # Panics
/// When the deadline passes first; the message holds the last observation.
pub(crate) fn until<T: std::fmt::Debug>(
    what: &str,
    deadline: Duration,
    mut observe: impl FnMut() -> T,
    is_right: impl Fn(&T) -> bool,
) -> T {
    let begin = Instant::now();
    loop {
        let observed = observe();
        if is_right(&observed) {
            return observed;
        }
        assert!(
            begin.elapsed() < deadline,
            "{what}: not within {deadline:?}; last seen: {observed:?}"
        );
        thread::sleep(INTERVAL);
    }
}
