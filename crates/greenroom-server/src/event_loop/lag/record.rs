use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use greenroom_quantiles::{Quantiles, micros};
use hdrhistogram::Histogram;
use parking_lot::Mutex;

use super::status::LoopStatus;
use super::{Pressure, lag_max};
use crate::app::LoopWatch;
use crate::event_loop::Balance;
use crate::settings::Settings;

/// Two significant digits: a lag is off by 1 % at most, and a histogram takes some 20 kB.
const SIGNIFICANT_DIGITS: u8 = 2;
/// A longer lag counts as this: a minute.
const LONGEST_MICROS: u64 = 60_000_000;

/// The state of a loop that other threads may read. The loop writes it when it has probed its lag,
/// and never for a single request.
pub(crate) struct Record {
    pub(super) name: String,
    pub(super) index: usize,
    balance: Arc<Balance>,
    lag_max: Duration,
    standing: Duration,
    /// Set by the loop's thread when it starts, if something watches.
    watch: OnceLock<Arc<dyn LoopWatch>>,
    requests: AtomicU64,
    lag_micros: AtomicU64,
    over: AtomicU64,
    rejected: AtomicU64,
    /// Locked by the loop once a probe; others copy it and let go.
    lags: Mutex<Histogram<u64>>,
    connections_metric: metrics::Gauge,
    requests_metric: metrics::Counter,
    lags_metric: metrics::Histogram,
    rejected_metric: metrics::Counter,
}

impl Record {
    pub(super) fn new(index: usize, balance: Arc<Balance>, settings: &Settings) -> Self {
        let (name, limits) = (settings.loop_name(index), &settings.limits);
        let lags = Histogram::new_with_max(LONGEST_MICROS, SIGNIFICANT_DIGITS)
            .expect("constants that the histogram allows");
        Self {
            connections_metric: metrics::gauge!(
                "greenroom_loop_connections", "loop" => name.clone()
            ),
            requests_metric: metrics::counter!(
                "greenroom_loop_requests_total", "loop" => name.clone()
            ),
            lags_metric: metrics::histogram!("greenroom_loop_lag_seconds", "loop" => name.clone()),
            rejected_metric: metrics::counter!(
                "greenroom_loop_connections_rejected_total", "loop" => name.clone()
            ),
            name,
            index,
            balance,
            lag_max: lag_max(limits),
            standing: limits.loop_lag_standing,
            watch: OnceLock::new(),
            requests: AtomicU64::new(0),
            lag_micros: AtomicU64::new(0),
            over: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            lags: Mutex::new(lags),
        }
    }

    pub(super) fn set_watch(&self, watch: &Arc<dyn LoopWatch>) {
        // A loop starts once.
        let _first = self.watch.set(Arc::clone(watch));
    }

    pub(super) fn set_requests(&self, requests: u64) {
        self.requests.store(requests, Ordering::Relaxed);
        self.requests_metric.absolute(requests);
        let connections = self.balance.count(self.index);
        let connections = u32::try_from(connections).unwrap_or(u32::MAX);
        self.connections_metric.set(connections);
    }

    pub(super) fn set_lag(&self, lag: Duration) {
        self.lag_micros.store(micros(lag), Ordering::Relaxed);
    }

    pub(super) fn add_lag(&self, lag: Duration) {
        self.set_lag(lag);
        self.lags_metric.record(lag);
        let mut lags = self.lags.lock();
        lags.saturating_record(micros(lag));
    }

    pub(super) fn count_change(&self, pressure: Pressure) {
        if pressure == Pressure::Over {
            self.over.fetch_add(1, Ordering::Relaxed);
        }
        let name = self.name.clone();
        let labels = [("loop", name), ("to", pressure.name().to_owned())];
        metrics::counter!("greenroom_loop_pressure_changes_total", &labels).increment(1);
    }

    pub(super) fn count_rejected(&self) {
        self.rejected.fetch_add(1, Ordering::Relaxed);
        self.rejected_metric.increment(1);
    }

    pub(super) fn count_declined(&self, why: &'static str) {
        let labels = [("loop", self.name.clone()), ("reason", why.to_owned())];
        metrics::counter!("greenroom_loop_declined_total", &labels).increment(1);
    }

    pub(super) fn status(&self) -> LoopStatus {
        let lags = self.lags.lock();
        let copied = lags.clone();
        drop(lags);
        LoopStatus {
            name: self.name.clone(),
            connections: self.balance.count(self.index),
            requests: self.requests.load(Ordering::Relaxed),
            pressure: self.balance.pressure(self.index),
            over: self.over.load(Ordering::Relaxed),
            rejected: self.rejected.load(Ordering::Relaxed),
            stalls: self.watch.get().map_or(0, |watch| watch.stalls()),
            loop_lag_max_micros: micros(self.lag_max),
            loop_lag_standing_micros: micros(self.standing),
            lag_micros: self.lag_micros.load(Ordering::Relaxed),
            lag: Quantiles::of(&copied),
        }
    }
}
