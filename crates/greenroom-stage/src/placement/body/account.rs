use std::time::Duration;

use super::Pace;
use crate::placement::origin::Origin;

/// What a body was busy with, for its route's account. It goes where the body goes.
///
/// Handler and body are one run of the route: that of the handler and the longest that the body had
/// between two waits. It is recorded when the body ends or is dropped, or as soon as it is long.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) origin: Origin,
    pub(super) pace: Pace,
    handler: Duration,
    is_recorded: bool,
}

impl Account {
    pub(super) fn new(origin: Origin, handler: Duration) -> Self {
        let short_run = origin.settings.short_run;
        let long_run = origin.route.long_run();
        let mut account = Self {
            pace: Pace::new(short_run, long_run, !origin.is_inline),
            origin,
            handler,
            is_recorded: false,
        };
        account.record_if_long();
        account
    }

    pub(super) fn polled(&mut self, busy: Duration, is_waiting: bool) {
        self.pace.record(busy, is_waiting);
        self.record_if_long();
    }

    fn record_if_long(&mut self) {
        if self.busy() > self.origin.route.long_run() {
            self.record();
        }
    }

    fn record(&mut self) {
        if self.is_recorded {
            return;
        }
        self.is_recorded = true;
        if self.origin.is_inline {
            self.origin.route.record_inline(self.busy());
        } else {
            self.origin.route.record_staged(self.busy());
        }
    }

    fn busy(&self) -> Duration {
        self.handler + self.pace.longest()
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.record();
    }
}
