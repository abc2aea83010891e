//! The closed loop: each connection sends when it has its response.

use std::collections::VecDeque;
use std::mem;

use super::core::{Core, Happened, Opened};
use crate::run::Share;

/// The pause before a failed connection is tried again: 10 ms.
const PAUSE_NS: u64 = 10_000_000;

/// A closed loop over a number of connections.
#[derive(Debug)]
pub(super) struct Closed {
    connections: usize,
    /// Requests in flight on each connection.
    depth: usize,
    /// Requests that may still be sent.
    left: u64,
    /// The time at which sending ends.
    ends: u64,
    /// New connections whose first request is to be sent.
    ///
    /// They are sent in a row, when all events at hand are handled: the server then wakes up once
    /// for all of them.
    opened: Vec<usize>,
    /// Connections that are to be tried again.
    paused: VecDeque<Paused>,
}

/// A connection that is to be tried again.
#[derive(Debug)]
struct Paused {
    /// The time of the next attempt.
    due: u64,
    /// The intended time of the request that waits for it in front of a full backlog.
    intended: Option<u64>,
}

impl Closed {
    pub(super) fn new(share: &Share) -> Self {
        let depth = if share.plan.keep_alive {
            share.plan.in_flight_max
        } else {
            1
        };
        Self {
            connections: share.connections,
            depth: usize::try_from(depth).unwrap_or(1).max(1),
            left: share.requests.unwrap_or(u64::MAX),
            ends: share.sending_ends(),
            opened: Vec::new(),
            paused: VecDeque::new(),
        }
    }

    /// Opens all connections at once.
    pub(super) fn begin(&mut self, core: &mut Core) {
        for _ in 0..self.connections {
            self.open(core, None);
        }
        self.send_opened(core);
    }

    /// Sends the first requests of new connections.
    pub(super) fn send_opened(&mut self, core: &mut Core) {
        let mut opened = mem::take(&mut self.opened);
        for key in opened.drain(..) {
            self.fill(core, key);
        }
        self.opened = opened;
    }

    /// Returns the time of the next call of [`Closed::due`], if any.
    pub(super) fn next_due(&self) -> Option<u64> {
        self.paused.front().map(|paused| paused.due)
    }

    /// Tries again where connecting failed.
    pub(super) fn due(&mut self, core: &mut Core) {
        while let Some(paused) = self.paused.front() {
            if paused.due > core.clock.now() {
                break;
            }
            let intended = paused.intended;
            self.paused.pop_front();
            self.open(core, intended);
        }
    }

    pub(super) fn happened(&mut self, core: &mut Core, happened: Happened) {
        match happened {
            Happened::Nothing => {}
            Happened::Ready(key) => self.fill(core, key),
            Happened::Gone { unconnected: true } => self.pause(core, None),
            Happened::Gone { unconnected: false } => self.open(core, None),
        }
    }

    /// Returns true if no request will be sent any more and none is in flight.
    pub(super) fn is_over(&self, core: &Core) -> bool {
        core.open_connections() == 0 && self.paused.is_empty()
    }

    /// Returns the number of requests that wait for room in the backlog.
    pub(super) fn waiting(&self) -> u64 {
        let waiting = self
            .paused
            .iter()
            .filter(|paused| paused.intended.is_some());
        waiting.count() as u64
    }

    /// Opens a connection for a request of now, or for that of `intended`, which has waited for
    /// room in the backlog: as one that is in flight, also when no more are sent.
    fn open(&mut self, core: &mut Core, intended: Option<u64>) {
        let now = core.clock.now();
        let intended = match intended {
            Some(intended) => intended,
            None if self.has_turns(now) => {
                self.take_turn(core);
                now
            }
            None => return,
        };
        let group = core.routes.next_origin();
        match core.open(group, intended, now) {
            Opened::Connection(key) => self.opened.push(key),
            Opened::Failed => self.pause(core, None),
            Opened::Busy => self.pause(core, Some(intended)),
        }
    }

    fn pause(&mut self, core: &Core, intended: Option<u64>) {
        let now = core.clock.now();
        if intended.is_some() || self.has_turns(now) {
            let due = now + PAUSE_NS;
            self.paused.push_back(Paused { due, intended });
        }
    }

    /// Queues as many requests as the connection may have in flight, and sends them.
    fn fill(&mut self, core: &mut Core, key: usize) {
        let now = core.clock.now();
        while core.flights(key) < self.depth && self.has_turns(now) {
            self.take_turn(core);
            core.push(key, now, now);
        }
        if core.flights(key) == 0 {
            core.close(key);
            return;
        }
        if let Happened::Gone { .. } = core.send(key) {
            // Not at once: a server that refuses everything must not monopolise the loop.
            self.pause(core, None);
        }
    }

    fn has_turns(&self, now: u64) -> bool {
        self.left > 0 && now < self.ends
    }

    fn take_turn(&mut self, core: &mut Core) {
        self.left -= 1;
        core.recorder.tally().counts.sent += 1;
    }
}
