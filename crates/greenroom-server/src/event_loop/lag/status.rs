use std::sync::{Arc, OnceLock, Weak};

use greenroom_quantiles::Quantiles;
use serde::Serialize;

use super::Pressure;
use super::record::Record;
use crate::event_loop::Balance;
use crate::settings::Settings;

/// A loop at one moment. Times are in microseconds; counts are since the loop began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoopStatus {
    /// The loop's name, and its thread's if it has one of its own: `loop-0`.
    pub name: String,
    /// Connections that it serves now.
    pub connections: usize,
    /// Requests that it has given to the application, as it last told: after a probe, and each
    /// quarter of a second.
    pub requests: u64,
    /// The degree to which it is behind.
    pub pressure: Pressure,
    /// Number of times that its pressure became [`Pressure::Over`].
    pub over: u64,
    /// Connections that it rejected with 503, because they had waited too long to be accepted.
    pub rejected: u64,
    /// Number of times that something other than a placed route held it up, such as a task that
    /// was spawned there; 0 if nothing [watches](crate::App::watch_loop) it.
    pub stalls: u64,
    /// The lag beyond which it is `Over`: [`Limits::loop_lag_max`](crate::Limits::loop_lag_max).
    pub loop_lag_max_micros: u64,
    /// Time for which every probe must have been beyond it first:
    /// [`Limits::loop_lag_standing`](crate::Limits::loop_lag_standing).
    pub loop_lag_standing_micros: u64,
    /// The lag by the last probe: how long what was ready waited to be served. If a probe is under
    /// way, at least as long as it has waited.
    pub lag_micros: u64,
    /// All lags that were probed. A busy loop is probed once in 64 polls of its connections, all
    /// the time while it is behind, and one with little to do four times a second at most, with
    /// nothing to do never: so this tells of its busy times.
    pub lag: Quantiles,
}

/// The loops of a server, from when it begins to serve until each ends.
#[derive(Debug, Default)]
pub(crate) struct Roster(OnceLock<Vec<Weak<Record>>>);

impl Roster {
    /// Enters the loops that a server begins with, all at once, and returns the record of each, in
    /// the order of their indexes.
    pub(crate) fn enter(&self, balance: &Arc<Balance>, settings: &Settings) -> Vec<Arc<Record>> {
        let record = |index| Arc::new(Record::new(index, Arc::clone(balance), settings));
        let records: Vec<_> = (0..balance.loops()).map(record).collect();
        // A server begins once.
        let _first = self.0.set(records.iter().map(Arc::downgrade).collect());
        records
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.0.get().is_some()
    }

    /// Returns the state of each, in the order of their indexes.
    pub(crate) fn status(&self) -> Vec<LoopStatus> {
        let running = self.0.get().into_iter().flatten().filter_map(Weak::upgrade);
        running.map(|record| record.status()).collect()
    }
}
