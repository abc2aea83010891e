//! The open loop: requests are sent at their intended times, independent of earlier responses.

use std::iter::Peekable;

use super::core::{Core, Happened, Opened};
use crate::plan::Arrivals;
use crate::record::{FailureKind, Tally};
use crate::run::Share;

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
    /// The most connections at once.
    connections_max: usize,
    /// The intended times of requests that are not sent yet.
    arrivals: Peekable<Arrivals>,
    /// The intended times of requests that are not counted as due yet.
    uncounted: Peekable<Arrivals>,
    /// The time at which sending ends.
    ends: u64,
    /// Free connections of each group; the one used last is taken first.
    idle: Vec<Vec<usize>>,
    /// The group of the next request, once its target is chosen.
    group: Option<usize>,
    blocked: Option<Blocked>,
}

/// The reason why the next request waits, though it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blocked {
    /// A free connection.
    Connections,
    /// The server's full backlog, until this time.
    Queue(u64),
}

impl Open {
    pub(super) fn new(share: &Share, arrivals: Arrivals, groups: usize) -> Self {
        Self {
            connections_max: share.connections.max(1),
            uncounted: arrivals.clone().peekable(),
            arrivals: arrivals.peekable(),
            ends: share.sending_ends(),
            idle: vec![Vec::new(); groups],
            group: None,
            blocked: None,
        }
    }

    /// Returns the time of the next call of [`Open::due`], unless a connection becomes free before.
    pub(super) fn next_due(&mut self) -> Option<u64> {
        let next = self.arrivals.peek().copied()?;
        Some(match self.blocked {
            None => next,
            Some(Blocked::Connections) => self.ends,
            Some(Blocked::Queue(until)) => until.min(self.ends),
        })
    }

    /// Sends the requests that are due; `free_since` is the time at which a connection became free
    /// for them, 0 if one always was.
    pub(super) fn due(&mut self, core: &mut Core, free_since: u64) {
        for _ in 0..SENDS_MAX {
            let Some(&intended) = self.arrivals.peek() else {
                return;
            };
            let now = core.clock.now();
            // The last ones are due right before the end, and may go out a little after it.
            let grace = self.blocked.map_or(Tally::LATE_NS, |_| 0);
            if now >= self.ends.saturating_add(grace) {
                return self.give_up(core);
            }
            if intended > now || self.is_blocked(now) || !self.send(core, intended, now, free_since)
            {
                return;
            }
            self.arrivals.next();
        }
    }

    pub(super) fn happened(&mut self, core: &mut Core, happened: Happened) {
        match happened {
            Happened::Nothing => return,
            Happened::Ready(key) if core.flights(key) > 0 => return,
            Happened::Ready(key) => self.idle[core.group_of(key)].push(key),
            Happened::Gone { .. } => self.forget(core),
        }
        if self.blocked == Some(Blocked::Connections) {
            self.blocked = None;
            let now = core.clock.now();
            self.due(core, now);
        }
    }

    /// Adds the requests that became due since the last call to the recorder's count.
    pub(super) fn count_due(&mut self, core: &mut Core, now: u64) {
        while self.uncounted.next_if(|time| *time <= now).is_some() {
            core.recorder.tally().counts.due += 1;
        }
    }

    /// Returns the number of requests that are due and not sent.
    pub(super) fn waiting(&self, now: u64) -> u64 {
        self.arrivals
            .clone()
            .take_while(|time| *time <= now)
            .count() as u64
    }

    /// Returns true if no request will be sent any more and none is in flight.
    pub(super) fn is_over(&mut self, core: &Core) -> bool {
        self.arrivals.peek().is_none() && core.in_flight() == 0
    }

    fn is_blocked(&mut self, now: u64) -> bool {
        if matches!(self.blocked, Some(Blocked::Queue(until)) if until <= now) {
            self.blocked = None;
        }
        self.blocked.is_some()
    }

    /// Sends a request; false if it must wait, true also if it failed in trying.
    fn send(&mut self, core: &mut Core, intended: u64, now: u64, free_since: u64) -> bool {
        let group = *self.group.get_or_insert_with(|| core.routes.next_origin());
        let opened = match self.idle[group].pop() {
            Some(key) => {
                core.push(key, intended, now);
                Opened::Connection(key)
            }
            None if core.open_connections() < self.connections_max || self.close_idle(core) => {
                core.open(group, intended, now)
            }
            None => {
                self.blocked = Some(Blocked::Connections);
                return false;
            }
        };
        if opened == Opened::Busy {
            self.blocked = Some(Blocked::Queue(now + BUSY_PAUSE_NS));
            return false;
        }
        self.group = None;
        core.recorder.sent(intended, now, free_since);
        if let Opened::Connection(key) = opened
            && let Happened::Gone { .. } = core.send(key)
        {
            self.forget(core);
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

    /// Records every unsent request as never sent, at the schedule's end.
    fn give_up(&mut self, core: &mut Core) {
        for intended in self.arrivals.by_ref().take(GIVEN_UP_MAX) {
            let time = (intended, self.ends);
            core.recorder.failed(FailureKind::NeverSent, time, || {
                "the schedule ended first".to_owned()
            });
        }
    }
}
