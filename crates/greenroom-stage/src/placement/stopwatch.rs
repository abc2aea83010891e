use std::time::{Duration, Instant};

use super::rule::SHORT_RUN;
use crate::thread_state::{cpu_time, sleeps};

/// Measures the poll time of a poll on a stage, where its thread often has to share a processor.
///
/// A poll that never slept took as long as it had a processor. Of one that slept the whole
/// time counts: on a loop it would have slept as well.
pub(super) struct Stopwatch {
    began: Instant,
    sleeps: Option<i64>,
    cpu: Duration,
}

impl Stopwatch {
    pub(super) fn start() -> Self {
        // The elapsed time is read around the CPU time, so the CPU time is never the longer one.
        let began = Instant::now();
        Self {
            began,
            sleeps: sleeps(),
            cpu: cpu_time(),
        }
    }

    pub(super) fn poll_time(&self) -> Duration {
        let taken = self.began.elapsed();
        if taken > SHORT_RUN && self.sleeps.is_some() && self.sleeps == sleeps() {
            return cpu_time().saturating_sub(self.cpu);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;
    use std::thread;

    #[test]
    fn a_poll_that_sleeps_is_busy_meanwhile() {
        let stopwatch = Stopwatch::start();
        thread::sleep(Duration::from_millis(3));
        assert!(stopwatch.poll_time() >= Duration::from_millis(3));
    }

    #[test]
    fn one_that_computes_is_busy_for_no_less_than_it_computed() {
        let stopwatch = Stopwatch::start();
        while cpu_time() < stopwatch.cpu + Duration::from_millis(3) {
            black_box(0);
        }
        let poll_time = stopwatch.poll_time();
        assert!(poll_time >= Duration::from_millis(3), "{poll_time:?}");
        assert!(poll_time <= stopwatch.began.elapsed(), "{poll_time:?}");
    }
}
