use std::time::Duration;

/// The bytes of a part for which a handler may take the time of a short run: as many as the
/// connections of a loop receive before it looks for other requests.
const PART_BYTES: u32 = 64 * 1_024;

/// The poll time that a part has at least, however small it is: receiving it took the server as
/// long.
const SMALL_PART: Duration = Duration::from_micros(25);

/// Returns what counts of the time of a poll in which a handler took this many bytes of its
/// request's body; at least a nanosecond, as the run has begun.
///
/// It waits for each part, and meanwhile the loop serves others. So what it does with a part is no
/// longer run than the part is long: not counted are [`SHORT_RUN`](super::SHORT_RUN) for each 64
/// KiB, and 25 us for a smaller one.
pub(super) fn counted(bytes: u64, poll_time: Duration, short_run: Duration) -> Duration {
    match bytes {
        0 => poll_time,
        bytes => poll_time
            .saturating_sub(allowed(bytes, short_run))
            .max(Duration::from_nanos(1)),
    }
}

fn allowed(bytes: u64, short_run: Duration) -> Duration {
    let bytes = u32::try_from(bytes).map_or(PART_BYTES, |bytes| bytes.min(PART_BYTES));
    let share = short_run.saturating_mul(bytes) / PART_BYTES;
    share.max(SMALL_PART)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::SHORT_RUN;

    fn of(bytes: u32, poll_time: Duration) -> Duration {
        counted(bytes.into(), poll_time, SHORT_RUN)
    }

    #[test]
    fn what_a_part_takes_counts_beyond_the_time_of_its_bytes() {
        assert_eq!(of(PART_BYTES, SHORT_RUN), Duration::from_nanos(1));
        assert_eq!(of(PART_BYTES, 3 * SHORT_RUN), 2 * SHORT_RUN);
        assert_eq!(of(PART_BYTES / 2, SHORT_RUN), SHORT_RUN / 2);
        assert_eq!(of(1, SMALL_PART * 2), SMALL_PART);
    }

    #[test]
    fn a_poll_that_takes_none_or_much_gains_nothing() {
        assert_eq!(of(0, SHORT_RUN), SHORT_RUN);
        assert_eq!(of(1_000 * PART_BYTES, 2 * SHORT_RUN), SHORT_RUN);
    }
}
