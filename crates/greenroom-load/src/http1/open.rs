//! The open loop: requests are sent at their intended times, independent of earlier responses.

use std::{iter, mem};

use super::core::{Core, Happened, Opened};
use crate::record::FailureKind;
use crate::run::{Due, Pacer};

/// Requests that are sent in a row before responses are read: a late generator must still read them
/// in time.
const SENDS_MAX: usize = 64;
/// Requests given up in a row between two checks for the run's end.
const GIVEN_UP_MAX: usize = 100_000;
/// The pause before another attempt, when a Unix socket's backlog is full.
const BUSY_PAUSE_NS: u64 = 1_000_000;

/// An open loop, which sends by schedule.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) pacer: Pacer,
    /// The most connections at once.
    connections_max: usize,
    /// Free connections of each group; the one used last is taken first.
    idle: Vec<Vec<usize>>,
    /// True if a connection is gone that may still be among them.
    ///
    /// They are looked through before the next request and not for each that is gone: a server that
    /// ends may close ten thousand at once.
    has_gone: bool,
    /// The time of the attempt after a full backlog, until which it is not the generator that is
    /// late.
    busy_until: u64,
    /// The most connections that had a request in flight at once.
    pub(super) in_flight_most: u64,
}

impl Open {
    pub(super) fn new(pacer: Pacer, connections: usize, groups: usize) -> Self {
        Self {
            pacer,
            connections_max: connections.max(1),
            idle: vec![Vec::new(); groups],
            has_gone: false,
            busy_until: 0,
            in_flight_most: 0,
        }
    }

    /// Sends the requests that are due; `free_since` is the time at which a connection became free
    /// for them, 0 if one always was.
    pub(super) fn due(&mut self, core: &mut Core, free_since: u64) {
        for _ in 0..SENDS_MAX {
            let now = core.clock.now();
            if self.pacer.has_ended(now) {
                return self.give_up(core);
            }
            let Some(due) = self.pacer.due(now, || core.routes.next_origin()) else {
                return;
            };
            if !self.send(core, due, now, free_since) {
                return;
            }
        }
    }

    pub(super) fn happened(&mut self, core: &mut Core, happened: Happened) {
        match happened {
            Happened::Nothing => return,
            Happened::Ready(key) if core.flights(key) > 0 => return,
            Happened::Ready(key) => self.idle[core.group_of(key)].push(key),
            Happened::Gone { .. } => self.has_gone = true,
        }
        if self.pacer.unblock() {
            let now = core.clock.now();
            self.due(core, now);
        }
    }

    /// Returns true if no request will be sent any more and none is in flight.
    pub(super) fn is_over(&self, core: &Core) -> bool {
        self.pacer.is_over() && core.in_flight() == 0
    }

    /// Sends a request; false if it must wait, true also if it failed in trying.
    fn send(&mut self, core: &mut Core, due: Due, now: u64, free_since: u64) -> bool {
        let Due { intended, target } = due;
        if mem::take(&mut self.has_gone) {
            self.forget(core);
        }
        let opened = match self.idle[target].pop() {
            Some(key) => {
                core.push(key, intended, now);
                Opened::Connection(key)
            }
            // At the most connections, an idle one of another group makes way.
            None if core.open_connections() < self.connections_max || self.close_idle(core) => {
                core.open(target, intended, now)
            }
            None => {
                self.pacer.block_until(Pacer::FREE_CONNECTION);
                return false;
            }
        };
        if opened == Opened::Busy {
            self.busy_until = now + BUSY_PAUSE_NS;
            self.pacer.block_until(self.busy_until);
            return false;
        }
        self.pacer.take();
        core.recorder
            .sent(intended, now, free_since.max(self.busy_until));
        let idle: usize = self.idle.iter().map(Vec::len).sum();
        let in_flight = core.open_connections().saturating_sub(idle);
        self.in_flight_most = self.in_flight_most.max(in_flight as u64);
        if let Opened::Connection(key) = opened
            && let Happened::Gone { .. } = core.send(key)
        {
            self.has_gone = true;
        }
        true
    }

    /// Closes a free connection of another group; false if there is none.
    fn close_idle(&mut self, core: &mut Core) -> bool {
        let Some(key) = self.idle.iter_mut().find_map(Vec::pop) else {
            return false;
        };
        core.close(key);
        true
    }

    /// Drops free connections that are gone.
    fn forget(&mut self, core: &Core) {
        for (group, keys) in self.idle.iter_mut().enumerate() {
            keys.retain(|key| core.is_idle(*key, group));
        }
    }

    /// Records the unsent requests as never sent, at the schedule's end.
    fn give_up(&mut self, core: &mut Core) {
        for time in iter::from_fn(|| self.pacer.give_up()).take(GIVEN_UP_MAX) {
            core.recorder.failed(FailureKind::NeverSent, time, || {
                "the schedule ended first".to_owned()
            });
        }
    }
}
