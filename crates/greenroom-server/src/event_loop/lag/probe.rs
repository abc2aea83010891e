use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::Instant;

use super::Pressure;
use super::gauge::Gauge;
use crate::app::App;
use crate::connection::message;
use crate::event_loop::Loop;

/// A loop that comes and goes warns no more often.
const WARNED_EVERY: Duration = Duration::from_secs(1);

impl<A: App> Loop<A> {
    /// Counts a poll of a connection: now and then it is time for a probe.
    pub(crate) fn count_poll(&self) {
        if self.meter.count_poll() {
            self.look_after_probe();
        }
    }

    #[cold]
    fn look_after_probe(&self) {
        match self.meter.probing_since.get() {
            None => self.meter.due.notify_one(),
            Some(since) => {
                let now = Instant::now();
                let lag = now - since;
                self.meter.record.set_lag(lag);
                self.adopt(self.meter.gauge.get().foreseen(lag, now), lag);
            }
        }
    }

    /// Measures the lag when it is due, and goes on for as long as the loop is behind, so that no
    /// flood is held against the loop after it has ended.
    pub(in crate::event_loop) async fn probe(self: Rc<Self>) {
        loop {
            self.meter.due.notified().await;
            while self.probe_once().await > self.meter.lag_max / 2 {}
        }
    }

    /// Waits as a connection would that becomes ready now: until the system is asked who is ready,
    /// and then behind all who were before it. That is what `yield_now` does on this runtime; a
    /// task that wakes itself would not wait for the system.
    async fn probe_once(&self) -> Duration {
        let since = Instant::now();
        self.meter.probing_since.set(Some(since));
        yield_now().await;
        let now = Instant::now();
        let lag = now - since;
        self.meter.probing_since.set(None);
        self.meter.record.add_lag(lag);
        self.meter.publish();
        self.adopt(self.meter.gauge.get().concluded(lag, now), lag);
        lag
    }

    fn adopt(&self, gauge: Gauge, lag: Duration) {
        let before = self.meter.gauge.replace(gauge).pressure();
        let pressure = gauge.pressure();
        if pressure != before {
            self.permits.balance.set_pressure(self.index, pressure);
            self.meter.record.count_change(pressure);
            self.log_change(before, pressure, lag);
            self.tell_pressure(pressure);
        }
    }

    fn log_change(&self, before: Pressure, pressure: Pressure, lag: Duration) {
        let (meter, name) = (&self.meter, &self.meter.record.name);
        if before == Pressure::Over {
            tracing::debug!(name, ?lag, ?pressure, "the loop is no longer behind");
        }
        if pressure == Pressure::Over {
            let warned_at = meter.warned_at.get();
            if warned_at.is_none_or(|at| at.elapsed() >= WARNED_EVERY) {
                meter.warned_at.set(Some(Instant::now()));
                let lag_max = meter.lag_max;
                tracing::warn!(name, ?lag, ?lag_max, "the loop is behind with its work");
            }
        }
    }

    /// The application's code runs here, perhaps within a poll of a connection of another client.
    fn tell_pressure(&self, pressure: Pressure) {
        let tell = || self.app.pressure(pressure);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(tell)) {
            let panic = message(panic.as_ref());
            tracing::error!(panic, "the application panicked when told of the pressure");
        }
    }
}
