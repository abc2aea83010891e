use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use slab::Slab;
use tokio::time::Instant;

use crate::drain::Aborted;

/// Requests under way on the connections that were handed over, for the report of a drain.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<Slab<Line>>);

#[derive(Debug)]
struct Line {
    route: String,
    since: Instant,
    peer: Option<SocketAddr>,
}

/// A line of the ledger, struck out when it is dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    ledger: Arc<Ledger>,
    key: usize,
}

impl Ledger {
    pub(crate) fn enter(self: &Arc<Self>, route: String, peer: Option<SocketAddr>) -> Entry {
        let key = self.lines().insert(Line {
            route,
            since: Instant::now(),
            peer,
        });
        Entry {
            ledger: Arc::clone(self),
            key,
        }
    }

    /// All that is still under way.
    pub(crate) fn cut_all(&self) -> Vec<Aborted> {
        let lines = self.lines();
        let cut = lines.iter().map(|(_, line)| Aborted {
            route: line.route.clone(),
            age: line.since.elapsed(),
            peer: line.peer,
        });
        cut.collect()
    }

    fn lines(&self) -> MutexGuard<'_, Slab<Line>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    pub(crate) fn rename(&self, route: String) {
        self.ledger.lines()[self.key].route = route;
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.ledger.lines().remove(self.key);
    }
}
