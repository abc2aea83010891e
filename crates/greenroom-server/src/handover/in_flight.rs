use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use slab::Slab;
use tokio::time::Instant;

use super::tunnel::State;
use crate::drain::Aborted;

/// The table of requests under way on the connections that were handed over, for the report of a
/// drain, and for the close frames of tunnels.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    requests: Mutex<Slab<Request>>,
    has_had_tunnels: AtomicBool,
}

#[derive(Debug)]
struct Request {
    route: String,
    since: Instant,
    peer: Option<SocketAddr>,
    /// There if it may become a tunnel, until the drain takes it.
    tunnel: Option<Weak<Mutex<State>>>,
}

/// A request in the table, removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    in_flight: Arc<InFlight>,
    key: usize,
}

impl InFlight {
    pub(crate) fn enter(self: &Arc<Self>, route: String, peer: Option<SocketAddr>) -> Entry {
        let key = self.requests.lock().insert(Request {
            route,
            since: Instant::now(),
            peer,
            tunnel: None,
        });
        Entry {
            in_flight: Arc::clone(self),
            key,
        }
    }

    /// Takes the tunnels that were not taken yet.
    pub(super) fn take_tunnels(&self) -> Vec<Weak<Mutex<State>>> {
        let mut requests = self.requests.lock();
        let tunnels = requests.iter_mut();
        tunnels
            .filter_map(|(_, request)| request.tunnel.take())
            .collect()
    }

    /// Returns the requests that are still under way, which the end of the drain aborts.
    pub(crate) fn aborted(&self) -> Vec<Aborted> {
        let requests = self.requests.lock();
        let aborted = requests.iter().map(|(_, request)| Aborted {
            route: request.route.clone(),
            age: request.since.elapsed(),
            peer: request.peer,
        });
        aborted.collect()
    }
}

impl Entry {
    /// Puts the tunnel that the request may become into the table. Returns `true` for the first one
    /// of the table.
    pub(super) fn may_become(&self, tunnel: Weak<Mutex<State>>) -> bool {
        self.in_flight.requests.lock()[self.key].tunnel = Some(tunnel);
        // Only its loop asks, so the order of other memory does not matter.
        !self.in_flight.has_had_tunnels.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn rename(&self, route: String) {
        self.in_flight.requests.lock()[self.key].route = route;
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.in_flight.requests.lock().remove(self.key);
    }
}
