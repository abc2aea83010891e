//! The wall clock, by which certificates end.

use std::pin::Pin;
use std::time::{Duration, SystemTime};

/// The longest time between two looks at the wall clock, which may be set and goes on while the
/// machine is suspended; tokio's clock does neither.
const LOOK_INTERVAL: Duration = Duration::from_mins(1);

/// A wall clock, by which renewals and retries are scheduled. Tests bring their own.
///
/// Time-outs of requests and orders are tokio's, not this clock's.
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
