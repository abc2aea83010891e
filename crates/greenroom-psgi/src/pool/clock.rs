use std::time::Instant;

/// Returns the time by tokio's clock, which tests set.
pub(super) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
