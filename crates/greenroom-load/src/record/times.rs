//! A histogram of times.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

/// The longest time that is told from longer ones: an hour.
const MAX_NS: u64 = 3_600_000_000_000;
/// Significant decimal digits: a time is known to 0.1 %.
const DIGITS: u8 = 3;
/// Digits of a time line's points, and of times by rate: 1 %.
const POINT_DIGITS: u8 = 2;

/// Times from 1 ns to 1 h in a histogram (`HdrHistogram`) of about 270 kB, each known to 0.1 %;
/// longer ones count as an hour.
#[derive(Clone)]
pub struct Times(Histogram<u64>);

impl Default for Times {
    fn default() -> Self {
        Self(with_digits(DIGITS))
    }
}

fn with_digits(digits: u8) -> Histogram<u64> {
    Histogram::new_with_bounds(1, MAX_NS, digits).expect("1 ns, 1 h and few digits are in range")
}

impl Times {
    /// Creates a histogram of about 35 kB that knows each time to 1 %.
    pub(crate) fn rough() -> Self {
        Self(with_digits(POINT_DIGITS))
    }

    /// Adds a time in nanoseconds.
    pub fn record(&mut self, nanoseconds: u64) {
        self.0.saturating_record(nanoseconds);
    }

    /// Adds a time that `count` requests had.
    pub fn record_many(&mut self, nanoseconds: u64, count: u64) {
        self.0.saturating_record_n(nanoseconds, count);
    }

    /// Adds all times of another.
    ///
    /// # Panics
    /// Never: all histograms of this type hold times of up to an hour.
    pub fn add(&mut self, other: &Self) {
        if !other.is_empty() {
            self.0
                .add(&other.0)
                .expect("both hold times of up to an hour");
        }
    }

    /// Removes all times.
    pub fn clear(&mut self) {
        if !self.is_empty() {
            self.0.reset();
        }
    }

    /// Returns the number of times recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Returns the number of times that are at most this long, to the histogram's accuracy.
    #[must_use]
    pub fn count_within(&self, longest: Duration) -> u64 {
        let nanoseconds = u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX);
        self.0.count_between(0, nanoseconds)
    }

    /// Returns true if no time was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the shortest time; zero when there is none.
    #[must_use]
    pub fn min(&self) -> Duration {
        Duration::from_nanos(if self.is_empty() { 0 } else { self.0.min() })
    }

    /// Returns the longest time, to 0.1 %; zero when there is none.
    #[must_use]
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.0.max())
    }

    /// Returns the arithmetic mean; zero when there is none.
    #[must_use]
    pub fn mean(&self) -> Duration {
        nanoseconds(self.0.mean())
    }

    /// Returns the standard deviation; zero when there is none.
    #[must_use]
    pub fn standard_deviation(&self) -> Duration {
        nanoseconds(self.0.stdev())
    }

    /// Returns the time within which this share of all requests (0 to 1) was done; zero when there
    /// is none.
    #[must_use]
    pub fn quantile(&self, part: f64) -> Duration {
        Duration::from_nanos(self.0.value_at_quantile(part))
    }

    /// Iterates over the times that were recorded, in nanoseconds and in order, with the number of
    /// requests of each.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0
            .iter_recorded()
            .map(|step| (step.value_iterated_to(), step.count_at_value()))
    }

    /// Returns the histogram itself, for its library's own formats.
    #[must_use]
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.0
    }

    /// Encodes the times, to 1 %, in a few hundred bytes.
    pub(crate) fn to_bytes(&self) -> Box<[u8]> {
        let mut rough = Self::rough();
        rough.add(self);
        let mut bytes = Vec::new();
        V2Serializer::new()
            .serialize(&rough.0, &mut bytes)
            .expect("a histogram of u64 is serialised into memory");
        bytes.into_boxed_slice()
    }

    /// Adds the times of [`Times::to_bytes`].
    pub(crate) fn add_bytes(&mut self, mut bytes: &[u8]) {
        let rough: Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes)
            .expect("these bytes are from to_bytes");
        for step in rough.iter_recorded() {
            self.record_many(step.value_iterated_to(), step.count_at_value());
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a mean of times up to an hour"
)]
fn nanoseconds(value: f64) -> Duration {
    Duration::from_nanos(if value.is_finite() { value as u64 } else { 0 })
}

impl fmt::Debug for Times {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Times")
            .field("count", &self.count())
            .field("median", &self.quantile(0.5))
            .field("max", &self.max())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_known_to_a_thousandth() {
        let mut times = Times::default();
        for micros in 1..=1000 {
            times.record(micros * 1000);
        }
        let p99 = times.quantile(0.99).as_secs_f64();
        assert!((p99 / 990e-6 - 1.0).abs() < 0.002, "{p99}");
        assert_eq!(times.count(), 1000);
    }

    #[test]
    fn an_hour_is_the_longest_time() {
        let mut times = Times::default();
        times.record(u64::MAX);
        let hour = times.max().as_secs_f64();
        assert!((hour / 3600.0 - 1.0).abs() < 0.25, "{hour}");
    }

    #[test]
    fn bytes_hold_times_to_a_hundredth() {
        let mut times = Times::default();
        times.record_many(123_456_789, 7);
        times.record(5);
        let mut copy = Times::default();
        copy.add_bytes(&times.to_bytes());
        assert_eq!(copy.count(), 8);
        let max = copy.max().as_secs_f64();
        assert!((max / 0.123_456_789 - 1.0).abs() < 0.01, "{max}");
    }

    #[test]
    fn nothing_recorded_is_all_zero() {
        let times = Times::default();
        assert_eq!(times.min(), Duration::ZERO);
        assert_eq!(times.mean(), Duration::ZERO);
        assert_eq!(times.quantile(0.99), Duration::ZERO);
    }
}
