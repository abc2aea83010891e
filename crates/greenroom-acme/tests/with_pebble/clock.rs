//! A wall clock that stands still until it is set.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use greenroom_acme::Clock;
use tokio::sync::watch;

#[derive(Clone)]
pub(crate) struct ManualClock {
    now: Arc<watch::Sender<SystemTime>>,
}

impl ManualClock {
    /// A clock that stands at the time of the authority's own.
    pub(crate) fn new() -> Self {
        Self::at(SystemTime::now())
    }

    pub(crate) fn at(time: SystemTime) -> Self {
        Self {
            now: Arc::new(watch::Sender::new(time)),
        }
    }

    pub(crate) fn set(&self, time: SystemTime) {
        self.now.send_replace(time);
    }

    pub(crate) fn advance(&self, time: Duration) {
        self.now.send_modify(|now| *now += time);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> SystemTime {
        *self.now.borrow()
    }

    fn sleep_until(&self, time: SystemTime) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let mut now = self.now.subscribe();
        Box::pin(async move {
            now.wait_for(|now| *now >= time).await.expect("it is ours");
        })
    }
}
