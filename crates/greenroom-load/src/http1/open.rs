//! The open loop: requests are sent at their time, whatever became of those before.

use std::iter::Peekable;

use super::core::{Core, Happened, Opened};
use crate::plan::Arrivals;
use crate::record::{FailureKind, Tally};
use crate::run::Share;

/// Requests that are sent in a row before answers are read: a generator that is late must not lose sight of them.
const SENDS_MAX: usize = 64;
/// Requests given up in a row before the run's end is looked for.
const GIVEN_UP_MAX: usize = 100_000;
/// How long we wait before we try again, when a Unix socket's queue of connections is full.
const BUSY_PAUSE_NS: u64 = 1_000_000;

/// Sends by schedule.
#[derive(Debug)]
pub(super) struct Open {
    /// Most connections at once.
    connections_max: usize,
    /// The intended times of those that were not sent yet.
    arrivals: Peekable<Arrivals>,
    /// The intended times of those that were not counted as due yet.
    uncounted: Peekable<Arrivals>,
    /// When no more is sent.
    ends: u64,
    /// Free connections of each group; the one used last is taken first.
    idle: Vec<Vec<usize>>,
    /// The group of the next request, once its turn was taken.
    group: Option<usize>,
    blocked: Option<Blocked>,
}

/// What the next request waits for, though its time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blocked {
    /// A free connection.
    Connections,
    /// The server's queue of connections, until this time.
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

    /// When [`Open::due`] has something to do, unless a connection becomes free before.
    pub(super) fn next_due(&mut self) -> Option<u64> {
        let next = self.arrivals.peek().copied()?;
        Some(match self.blocked {
            None => next,
            Some(Blocked::Connections) => self.ends,
            Some(Blocked::Queue(until)) => until.min(self.ends),
        })
    }

    /// Sends what is due; `free_since` is when a connection became free for it, 0 if one always was.
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
            Happened::Room(key) if core.flights(key) > 0 => return,
            Happened::Room(key) => self.idle[core.group_of(key)].push(key),
            Happened::Gone { .. } => self.forget(core),
        }
        if self.blocked == Some(Blocked::Connections) {
            self.blocked = None;
            let now = core.clock.now();
            self.due(core, now);
        }
    }

    /// Adds the requests whose time has come since the last call to the recorder's count.
    pub(super) fn count_due(&mut self, core: &mut Core, now: u64) {
        while self.uncounted.next_if(|time| *time <= now).is_some() {
            core.recorder.tally().counts.due += 1;
        }
    }

    /// Requests whose time has come and which were not sent.
    pub(super) fn waiting(&self, now: u64) -> u64 {
        self.arrivals
            .clone()
            .take_while(|time| *time <= now)
            .count() as u64
    }

    /// Whether no request will be sent any more and none is under way.
    pub(super) fn is_over(&mut self, core: &Core) -> bool {
        self.arrivals.peek().is_none() && core.under_way() == 0
    }

    fn is_blocked(&mut self, now: u64) -> bool {
        if matches!(self.blocked, Some(Blocked::Queue(until)) if until <= now) {
            self.blocked = None;
        }
        self.blocked.is_some()
    }

    /// Whether the request went out, or failed in trying; not when it must wait.
    fn send(&mut self, core: &mut Core, intended: u64, now: u64, free_since: u64) -> bool {
        let group = *self.group.get_or_insert_with(|| core.routes.next_origin());
        let opened = match self.idle[group].pop() {
            Some(key) => {
                core.push(key, intended, now);
                Opened::Connection(key)
            }
            None if core.open_connections() < self.connections_max || self.make_room(core) => {
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

    /// Closes a free connection of another group; whether there was one.
    fn make_room(&mut self, core: &mut Core) -> bool {
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

    /// The schedule is over: what was not sent never will be.
    fn give_up(&mut self, core: &mut Core) {
        for intended in self.arrivals.by_ref().take(GIVEN_UP_MAX) {
            let time = (intended, self.ends);
            core.recorder.failed(FailureKind::NeverSent, time, || {
                "the schedule ended first".to_owned()
            });
        }
    }
}
