//! The wall clock, by which certificates end, and waits that do not depend on it alone.

use std::pin::Pin;
use std::time::{Duration, SystemTime};

use tokio::time::{Instant, timeout_at};

/// The longest time between two looks at the wall clock, which may be set and goes on while the
/// machine is suspended; tokio's clock does neither.
const LOOK_INTERVAL: Duration = Duration::from_mins(1);

/// A wall clock, by which renewals and retries are scheduled. Tests bring their own.
///
/// Time-outs of requests and orders are tokio's, not this clock's. A retry is due by either: so it
/// is not held up where this clock is set back.
pub trait Clock: Send + Sync + 'static {
    /// Returns the time.
    fn now(&self) -> SystemTime;

    /// Completes when it is `time` or later.
    fn sleep_until(&self, time: SystemTime) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// The system's clock.
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn sleep_until(&self, time: SystemTime) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            while let Ok(left) = time.duration_since(SystemTime::now())
                && !left.is_zero()
            {
                tokio::time::sleep(left.min(LOOK_INTERVAL)).await;
            }
        })
    }
}

/// The end of a wait: by the wall clock, or when as much time has gone by on tokio's as was to be
/// waited. The first alone would come late after the wall clock is set back, by as much as that;
/// the second after the machine was suspended.
#[derive(Clone, Copy)]
pub(crate) struct Deadline {
    at: SystemTime,
    instant: Instant,
}

impl Deadline {
    /// Returns the end of a wait that begins now.
    pub(crate) fn after(wait: Duration, clock: &dyn Clock) -> Self {
        Self {
            at: clock.now() + wait,
            instant: Instant::now() + wait,
        }
    }

    /// Returns the end by the wall clock.
    pub(crate) fn at(self) -> SystemTime {
        self.at
    }

    /// Returns the time that is left, by the clock that has less.
    pub(crate) fn left(self, clock: &dyn Clock) -> Duration {
        let by_wall = self.at.duration_since(clock.now()).unwrap_or_default();
        by_wall.min(self.instant.saturating_duration_since(Instant::now()))
    }

    pub(crate) fn is_over(self, clock: &dyn Clock) -> bool {
        self.left(clock).is_zero()
    }

    /// Completes when it is over.
    pub(crate) async fn wait(self, clock: &dyn Clock) {
        // An error: it is over by tokio's clock.
        let _ = timeout_at(self.instant, clock.sleep_until(self.at)).await;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::UNIX_EPOCH;
    use tokio::sync::watch;

    const MINUTE: Duration = Duration::from_mins(1);

    /// A wall clock that stands still until it is set.
    #[derive(Clone)]
    pub(crate) struct ManualClock(Arc<watch::Sender<SystemTime>>);

    impl ManualClock {
        pub(crate) fn at(time: SystemTime) -> Self {
            Self(Arc::new(watch::Sender::new(time)))
        }

        pub(crate) fn set(&self, time: SystemTime) {
            self.0.send_replace(time);
        }
    }

    impl Clock for ManualClock {
        fn now(&self) -> SystemTime {
            *self.0.borrow()
        }

        fn sleep_until(&self, time: SystemTime) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
            let mut now = self.0.subscribe();
            Box::pin(async move {
                now.wait_for(|now| *now >= time).await.expect("it is ours");
            })
        }
    }

    /// Waits for ten minutes by a wall clock that is set meanwhile. Returns the time that has gone
    /// by on tokio's.
    async fn waited(set: impl FnOnce(SystemTime) -> SystemTime) -> Duration {
        let clock = ManualClock::at(UNIX_EPOCH + 1000 * MINUTE);
        let begin = Instant::now();
        let deadline = Deadline::after(10 * MINUTE, &clock);
        clock.set(set(clock.now()));
        deadline.wait(&clock).await;
        assert!(deadline.is_over(&clock));
        begin.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_wall_clock_that_is_set_back_does_not_make_a_wait_longer() {
        let waited = waited(|now| now - 500 * MINUTE).await;
        assert_eq!(waited.as_secs(), 600);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wall_clock_that_goes_on_ends_a_wait() {
        assert_eq!(waited(|now| now + 10 * MINUTE).await, Duration::ZERO);
    }
}
