use std::time::Duration;

/// The number of runs over which the mean reaches back: the weight of a new run is 1/32.
pub const REMEMBERED_RUNS: u32 = 32;

/// The mean service time of the latest runs.
///
/// An exponentially weighted mean, and not one over a window: it needs two words and no list, a
/// change of load is known after some [`REMEMBERED_RUNS`] runs however many come in a second, and
/// no run leaves it with a jump. It begins as the plain mean, so the very first run counts in full.
///
/// ```
/// use std::time::Duration;
/// use greenroom_stage::admission::ServiceTime;
///
/// let ms = Duration::from_millis;
/// let mut mean = ServiceTime::default();
/// assert_eq!(mean.mean(), ms(0));
/// mean.record(ms(30));
/// assert_eq!(mean.mean(), ms(30));
/// mean.record(ms(10));
/// assert_eq!(mean.mean(), ms(20));
/// for _ in 0..30 {
///     mean.record(ms(20));
/// }
/// mean.record(ms(52)); // 20 + (52 - 20) / 32
/// assert_eq!(mean.mean(), ms(21));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ServiceTime {
    mean_nanos: u64,
    runs: u32,
}

impl ServiceTime {
    /// Takes a finished run into account.
    pub fn record(&mut self, run: Duration) {
        self.runs = (self.runs + 1).min(REMEMBERED_RUNS);
        let run = u64::try_from(run.as_nanos()).unwrap_or(u64::MAX);
        let weight = u64::from(self.runs);
        self.mean_nanos = if run >= self.mean_nanos {
            self.mean_nanos + (run - self.mean_nanos) / weight
        } else {
            self.mean_nanos - (self.mean_nanos - run) / weight
        };
    }

    /// Returns the mean; zero before the first run.
    #[must_use]
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.mean_nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_change_of_load_is_known_after_some_runs() {
        let mut mean = ServiceTime::default();
        for _ in 0..1_000 {
            mean.record(Duration::from_micros(100));
        }
        for _ in 0..100 {
            mean.record(Duration::from_millis(30));
        }
        assert!(mean.mean() > Duration::from_millis(28), "{:?}", mean.mean());
    }

    proptest! {
        #[test]
        fn the_mean_lies_between_the_shortest_and_the_longest(
            runs in prop::collection::vec(any::<u64>(), 1..200),
        ) {
            let mut mean = ServiceTime::default();
            for run in &runs {
                mean.record(Duration::from_nanos(*run));
            }
            let shortest = runs.iter().min().copied().map(Duration::from_nanos);
            let longest = runs.iter().max().copied().map(Duration::from_nanos);
            prop_assert!(Some(mean.mean()) >= shortest && Some(mean.mean()) <= longest);
        }
    }
}
