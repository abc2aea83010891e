use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use slab::Slab;
use tokio::time::Instant;

use crate::drain::Aborted;

/// The table of requests under way on the connections that were handed over, for the report of a
/// drain.
#[derive(Debug, Default)]
pub(crate) struct InFlight(Mutex<Slab<Request>>);

#[derive(Debug)]
struct Request {
    route: String,
    since: Instant,
    peer: Option<SocketAddr>,
}

/// A request in the table, removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    in_flight: Arc<InFlight>,
    key: usize,
}

impl InFlight {
    pub(crate) fn enter(self: &Arc<Self>, route: String, peer: Option<SocketAddr>) -> Entry {
        let key = self.0.lock().insert(Request {
            route,
            since: Instant::now(),
            peer,
        });
        Entry {
            in_flight: Arc::clone(self),
            key,
        }
    }

    /// Returns the requests that are still under way, which the end of the drain aborts.
    pub(crate) fn aborted(&self) -> Vec<Aborted> {
        let requests = self.0.lock();
        let aborted = requests.iter().map(|(_, request)| Aborted {
            route: request.route.clone(),
            age: request.since.elapsed(),
            peer: request.peer,
        });
        aborted.collect()
    }
}

impl Entry {
    pub(crate) fn rename(&self, route: String) {
        self.in_flight.0.lock()[self.key].route = route;
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.in_flight.0.lock().remove(self.key);
    }
}
