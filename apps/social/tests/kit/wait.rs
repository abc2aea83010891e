//! Waits for what another task or process brings about without telling.

use std::time::Duration;

/// Far longer than anything here takes: a test that waits so long has failed.
const PATIENCE: Duration = Duration::from_mins(3);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Returns what `look` finds, as soon as it finds something.
///
/// # Panics
/// After three minutes.
pub(crate) async fn found<T>(mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    let in_time = tokio::time::timeout(PATIENCE, looking).await;
    in_time.expect("what is waited for comes in time")
}

/// Waits until the condition holds.
///
/// # Panics
/// After three minutes.
pub(crate) async fn until(mut holds: impl AsyncFnMut() -> bool) {
    found(async || holds().await.then_some(())).await;
}
