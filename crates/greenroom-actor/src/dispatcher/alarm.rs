use std::task::Waker;
use std::time::Duration;

use tokio::time::Instant;

/// The action at a deadline.
pub(super) enum Alarm {
    Wake(Waker),
    Call(Box<dyn FnOnce() + Send>),
}

/// Milliseconds since the timetable was made.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    pub(super) begin: Instant,
}

impl Clock {
    pub(super) fn new() -> Self {
        Self {
            begin: Instant::now(),
        }
    }

    pub(super) fn millisecond(self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.begin);
        millis(since, since.subsec_millis())
    }

    /// Rounds up: an alarm is never early.
    pub(super) fn millisecond_after(self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.begin);
        millis(since, since.subsec_nanos().div_ceil(1_000_000))
    }
}

/// Returns whole milliseconds. Cheaper than `as_millis`, which calculates with 128 bits.
fn millis(time: Duration, below_second: u32) -> u64 {
    let millis = time.as_secs().saturating_mul(1_000);
    millis.saturating_add(below_second.into()).min(u64::MAX / 2)
}
