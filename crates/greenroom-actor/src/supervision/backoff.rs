use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The wait of a failed actor before its restart: `first`, doubled with every further failure up to
/// `longest`, plus up to `jitter_percent` of it, so that actors which failed together do not come
/// back together.
///
/// In a configuration times are written as `"100ms"` or `"10s"`.
///
/// Worked example, with the defaults (100 ms, 10 s, 20 %) and an actor that fails again at once:
///
/// | restart | rests at least | at most |
/// |---|---|---|
/// | 1 | 100 ms | 120 ms |
/// | 2 | 200 ms | 240 ms |
/// | 3 | 400 ms | 480 ms |
/// | 4 | 800 ms | 960 ms |
/// | 5 | 1.6 s | 1.92 s |
///
/// With the default intensity, 5 in 5 s, the sixth failure comes 3.1 to 3.72 s after the first, and
/// is escalated. Restarts are counted within the intensity's time: with 100 in a minute the seventh
/// rests 6.4 s, the eighth and all further 10 s to 12 s; with 100 in 5 s none rests longer than the
/// sixth, 3.2 s, because by then the first failures are older than 5 s and count no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Backoff {
    /// The wait before the first restart. Default: 100 ms; zero restarts at once.
    #[serde(with = "humantime_serde")]
    pub first: Duration,
    /// The longest wait, before jitter. Default: 10 s.
    #[serde(with = "humantime_serde")]
    pub longest: Duration,
    /// The most that is added at random, in percent of the wait. Default: 20.
    pub jitter_percent: u8,
}

impl Backoff {
    /// No wait: restarts at once.
    pub const NONE: Self = Self {
        first: Duration::ZERO,
        longest: Duration::ZERO,
        jitter_percent: 0,
    };

    /// The largest `longest`, a year. A longer one means this.
    pub const LONGEST_MAX: Duration = Duration::from_hours(365 * 24);

    /// Returns the wait before the restart number `restart`, from 1. `random` is from 0 up to 1.
    #[must_use]
    pub fn rest(&self, restart: u32, random: f64) -> Duration {
        // More doublings do not fit into the factor, of 32 bits.
        let doublings = restart.saturating_sub(1).min(31);
        let longest = self.longest.min(Self::LONGEST_MAX);
        let rest = self.first.saturating_mul(1 << doublings).min(longest);
        rest + rest.mul_f64(f64::from(self.jitter_percent) / 100.0 * random)
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(100),
            longest: Duration::from_secs(10),
            jitter_percent: 20,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_as_the_worked_example_says() {
        let backoff = Backoff::default();
        let millis = |restart, random| backoff.rest(restart, random).as_millis();
        let shortest: Vec<_> = (1..=9).map(|restart| millis(restart, 0.0)).collect();
        let longest: Vec<_> = (1..=9).map(|restart| millis(restart, 1.0)).collect();
        assert_eq!(
            shortest,
            [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]
        );
        assert_eq!(
            longest,
            [120, 240, 480, 960, 1_920, 3_840, 7_680, 12_000, 12_000]
        );
    }

    #[test]
    fn is_configured_in_words() {
        let backoff = toml::from_str::<Backoff>("first = \"1s\"\nlongest = \"2m\"");
        let expected = Backoff {
            first: Duration::from_secs(1),
            longest: Duration::from_mins(2),
            ..Backoff::default()
        };
        assert_eq!(backoff, Ok(expected));
    }

    #[test]
    fn never_overflows() {
        assert_eq!(
            Backoff::default().rest(u32::MAX, 0.0),
            Duration::from_secs(10)
        );
        assert_eq!(Backoff::NONE.rest(7, 0.9), Duration::ZERO);
    }
}
