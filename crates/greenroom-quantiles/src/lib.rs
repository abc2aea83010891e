//! A distribution of times at one moment, as the status of a server and of its stages shows it.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// A distribution of times in microseconds. All zero when nothing was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Quantiles {
    /// The number of times that were recorded.
    pub count: u64,
    /// Half of them are at most this.
    pub p50_micros: u64,
    /// 90 of 100 are at most this.
    pub p90_micros: u64,
    /// 99 of 100 are at most this.
    pub p99_micros: u64,
    /// The longest.
    pub max_micros: u64,
}

impl Quantiles {
    /// Returns the quantiles of a histogram of microseconds.
    #[must_use]
    pub fn of(histogram: &Histogram<u64>) -> Self {
        Self {
            count: histogram.len(),
            p50_micros: histogram.value_at_quantile(0.5),
            p90_micros: histogram.value_at_quantile(0.9),
            p99_micros: histogram.value_at_quantile(0.99),
            max_micros: histogram.max(),
        }
    }
}

/// Returns a time in whole microseconds, and the largest number for one of half a million years.
#[must_use]
pub fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_is_shown_by_its_quantiles() {
        let mut histogram = Histogram::new_with_max(10_000, 3).expect("it allows that");
        assert_eq!(Quantiles::of(&histogram), Quantiles::default());
        for micros in 1..=1_000 {
            histogram.saturating_record(micros);
        }
        let expected = Quantiles {
            count: 1_000,
            p50_micros: 500,
            p90_micros: 900,
            p99_micros: 990,
            max_micros: 1_000,
        };
        assert_eq!(Quantiles::of(&histogram), expected);
    }

    #[test]
    fn a_time_that_is_too_long_is_the_longest() {
        assert_eq!(micros(Duration::from_nanos(1_999)), 1);
        assert_eq!(micros(Duration::MAX), u64::MAX);
    }
}
