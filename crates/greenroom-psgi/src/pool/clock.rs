use std::time::{Duration, Instant};

/// Returns the time by tokio's clock, which tests set.
pub(super) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
