use std::time::Duration;

use greenroom_timing::body_bytes_told;

/// The bytes of a part for which a handler may take the time of a short run: as many as the
/// connections of a loop receive before it looks for other requests.
const PART_BYTES: u32 = 64 * 1_024;

/// The poll time that a part has at least, however small it is: receiving it took the server as
/// long.
const SMALL_PART: Duration = Duration::from_micros(25);

/// The parts of its request's body that a handler takes during a poll.
///
/// It waits for each of them, and meanwhile the loop serves others. So what it does with a part is
/// no longer run than the part is long: not counted are [`SHORT_RUN`](super::SHORT_RUN) for each 64
/// KiB, and 25 us for a smaller one.
pub(super) struct Parts {
    told: u64,
}

impl Parts {
    /// Begins with the next part that the calling thread is told of.
    pub(super) fn begin() -> Self {
        Self {
            told: body_bytes_told(),
        }
    }

    /// Returns what counts of the time of the poll, which ends now, on the same thread; at least a
    /// nanosecond, as the run has begun.
    pub(super) fn counted(&self, poll_time: Duration, short_run: Duration) -> Duration {
        match body_bytes_told().wrapping_sub(self.told) {
            0 => poll_time,
            bytes => poll_time
                .saturating_sub(allowed(bytes, short_run))
                .max(Duration::from_nanos(1)),
        }
    }
}

fn allowed(bytes: u64, short_run: Duration) -> Duration {
    let bytes = u32::try_from(bytes).map_or(PART_BYTES, |bytes| bytes.min(PART_BYTES));
    let share = short_run.saturating_mul(bytes) / PART_BYTES;
    share.max(SMALL_PART)
}

#[cfg(test)]
mod tests {
    use greenroom_timing::tell_body_part;

    use super::*;
    use crate::placement::SHORT_RUN;

    fn counted(bytes: u32, poll_time: Duration) -> Duration {
        let parts = Parts::begin();
        tell_body_part(bytes.into());
        parts.counted(poll_time, SHORT_RUN)
    }

    #[test]
    fn what_a_part_takes_counts_beyond_the_time_of_its_bytes() {
        assert_eq!(counted(PART_BYTES, SHORT_RUN), Duration::from_nanos(1));
        assert_eq!(counted(PART_BYTES, 3 * SHORT_RUN), 2 * SHORT_RUN);
        assert_eq!(counted(PART_BYTES / 2, SHORT_RUN), SHORT_RUN / 2);
        assert_eq!(counted(1, SMALL_PART * 2), SMALL_PART);
    }

    #[test]
    fn a_poll_that_takes_none_or_much_gains_nothing() {
        assert_eq!(counted(0, SHORT_RUN), SHORT_RUN);
        assert_eq!(counted(1_000 * PART_BYTES, 2 * SHORT_RUN), SHORT_RUN);
    }
}
