//! Formats of numbers in reports.

use std::time::Duration;

use crate::record::Times;

/// Converts a count to a float, for a division.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts and bytes of a run stay below 2^53, or need not be exact beyond"
)]
pub(super) fn number(count: u64) -> f64 {
    count as f64
}

/// Returns `part` as a share of `whole`; 0 when that is 0.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        number(part) / number(whole)
    }
}

/// Returns a rate per second; 0 when no time passed.
pub(super) fn per_second(count: u64, time: Duration) -> f64 {
    if time.is_zero() {
        0.0
    } else {
        number(count) / time.as_secs_f64()
    }
}

/// Converts to milliseconds, as the nearest number: as text it has no more digits than the time
/// has.
pub(super) fn milliseconds(time: Duration) -> f64 {
    number(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)) / 1e6
}

/// Rounds to whole milliseconds as ab does: from whole microseconds, half upwards.
pub(super) fn rounded_milliseconds(time: Duration) -> u64 {
    u64::try_from((time.as_micros() + 500) / 1000).unwrap_or(u64::MAX)
}

/// Formats a share from 0 to 1 in percent, with a blank before the sign: scripts find ab's
/// percentages by `99%`.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 0.1 {
        format!("{percent:.3} %")
    } else {
        format!("{percent:.1} %")
    }
}

/// Returns the time with `rank` others before it when all are sorted; the longest, when there are
/// fewer.
pub(super) fn at_rank(times: &Times, rank: u64) -> Duration {
    // The half keeps the quotient off the edges, where rounding would reach the neighbour.
    times.quantile((number(rank) + 0.5) / number(times.count().max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_round_as_in_ab() {
        let rounded = |micros| rounded_milliseconds(Duration::from_micros(micros));
        assert_eq!(
            [rounded(0), rounded(499), rounded(500), rounded(1499)],
            [0, 0, 1, 1]
        );
    }

    #[test]
    fn small_shares_keep_their_digits() {
        let texts = [0.0, 0.0005, 0.0123, 1.0].map(percent);
        assert_eq!(texts, ["0.0 %", "0.050 %", "1.2 %", "100.0 %"]);
    }

    #[test]
    fn ranks_are_those_of_the_sorted_times() {
        let mut times = Times::default();
        for time in 1..=200 {
            times.record(time * 5);
        }
        for rank in 0..200 {
            let expected = u128::from((rank + 1) * 5);
            assert_eq!(at_rank(&times, rank).as_nanos(), expected, "{rank}");
        }
        assert_eq!(at_rank(&times, 200).as_nanos(), 1000);
        assert_eq!(at_rank(&Times::default(), 0), Duration::ZERO);
    }
}
