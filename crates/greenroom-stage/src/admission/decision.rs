use std::time::Duration;

/// The longest `Retry-After` that is sent to a rejected client.
pub const RETRY_AFTER_MAX: Duration = Duration::from_mins(1);

/// The percentage of the allowed wait up to which new work is admitted. Predictions err, and
/// admitted work is to be served within the whole of the allowed wait.
pub const PROMISED_PERCENT: u32 = 90;

/// Admits new work that is predicted to wait for `predicted` where `wait_max` is allowed; `None`
/// allows any wait.
///
/// ```
/// use std::time::Duration;
/// use greenroom_stage::admission::admit;
///
/// let ms = Duration::from_millis;
/// assert_eq!(admit(ms(450), Some(ms(500))), Ok(()));
/// // 2,750 ms would have to pass before the queue is short enough: come back in 3 s.
/// assert_eq!(admit(ms(3_200), Some(ms(500))), Err(3));
/// assert_eq!(admit(ms(3_200), None), Ok(()));
/// ```
///
/// # Errors
///
/// The seconds for `Retry-After`: see [`retry_after`].
pub fn admit(predicted: Duration, wait_max: Option<Duration>) -> Result<(), u64> {
    match wait_max {
        Some(wait_max) if predicted > promised(wait_max) => Err(retry_after(predicted, wait_max)),
        _ => Ok(()),
    }
}

/// Returns the time until the queue is short enough again, in whole seconds, rounded up: at least
/// 1, at most [`RETRY_AFTER_MAX`].
///
/// ```
/// use std::time::Duration;
/// use greenroom_stage::admission::retry_after;
///
/// let ms = Duration::from_millis;
/// assert_eq!(retry_after(ms(460), ms(500)), 1);
/// assert_eq!(retry_after(ms(1_451), ms(500)), 2);
/// assert_eq!(retry_after(ms(3_600_000), ms(500)), 60);
/// ```
#[must_use]
pub fn retry_after(predicted: Duration, wait_max: Duration) -> u64 {
    let over = predicted.saturating_sub(promised(wait_max));
    let over = over.min(RETRY_AFTER_MAX);
    let begun = u64::from(over.subsec_nanos() > 0);
    (over.as_secs() + begun).max(1)
}

pub(super) fn promised(wait_max: Duration) -> Duration {
    (wait_max / 100).saturating_mul(PROMISED_PERCENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn who_would_wait_longer_is_let_in_no_sooner(
            predicted in 0..100_000_000_u64,
            more in 0..100_000_000_u64,
            wait_max in 0..10_000_000_u64,
        ) {
            let micros = Duration::from_micros;
            let shorter = admit(micros(predicted), Some(micros(wait_max)));
            let longer = admit(micros(predicted + more), Some(micros(wait_max)));
            prop_assert!(shorter.err() <= longer.err());
            prop_assert!(longer.err().is_none_or(|seconds| (1..=60).contains(&seconds)));
        }
    }
}
