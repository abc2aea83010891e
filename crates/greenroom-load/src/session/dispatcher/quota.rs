//! The dispatcher of a closed loop.

use super::Ticket;
use crate::run::{Due, Routes};

/// A quota that dispatches requests at once, until it is used up or time is up.
#[derive(Debug)]
pub(in crate::session) struct Quota {
    left: u64,
    ends: u64,
    routes: Routes,
}

impl Quota {
    pub(super) fn new(requests: Option<u64>, ends: u64, routes: Routes) -> Self {
        Self {
            left: requests.unwrap_or(u64::MAX),
            ends,
            routes,
        }
    }

    pub(super) fn origin_of(&self, endpoint: usize) -> usize {
        self.routes.origin_of(endpoint)
    }

    /// Takes the first request of a new connection.
    pub(in crate::session) fn take(&mut self, now: u64) -> Option<Ticket> {
        self.admit(now).then(|| ticket(self.routes.next(), now))
    }

    /// Takes the next request of a connection.
    pub(super) fn take_within(&mut self, origin: usize, now: u64) -> Option<Ticket> {
        self.admit(now)
            .then(|| ticket(self.routes.next_within(origin), now))
    }

    fn admit(&mut self, now: u64) -> bool {
        let admits = self.left > 0 && now < self.ends;
        self.left -= u64::from(admits);
        admits
    }
}

fn ticket(target: usize, now: u64) -> Ticket {
    let intended = now;
    Ticket::new(Due { intended, target }, now)
}
