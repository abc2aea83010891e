//! The open loop: requests are sent at their time, whatever became of those before.

use super::core::{Core, Happened};
use crate::plan::Arrivals;
use crate::record::FailureKind;
use crate::run::Share;

/// Sends by schedule.
#[derive(Debug)]
pub(super) struct Open {
    /// Most connections at once.
    connections_max: usize,
    arrivals: Arrivals,
    /// The intended time of the next request to be sent.
    next: Option<u64>,
    /// Counts the requests whose time has come.
    due: Arrivals,
    next_due: Option<u64>,
    /// When no more is sent.
    ends: u64,
    /// Free connections of each group; the one used last is taken first.
    idle: Vec<Vec<usize>>,
    /// The group of the next request, once its turn was taken.
    group: Option<usize>,
    /// Whether the next request waits for a connection.
    is_blocked: bool,
}

impl Open {
    pub(super) fn new(share: &Share, arrivals: Arrivals, groups: usize) -> Self {
        let mut due = arrivals.clone();
        let mut arrivals = arrivals;
        Self {
            connections_max: share.connections.max(1),
            next: arrivals.next(),
            arrivals,
            next_due: due.next(),
            due,
            ends: share.sending_ends(),
            idle: vec![Vec::new(); groups],
            group: None,
            is_blocked: false,
        }
    }

    /// When [`Open::due`] has something to do, unless it waits for a connection.
    pub(super) fn next_due(&self) -> Option<u64> {
        match self.next {
            Some(_) if self.is_blocked => Some(self.ends),
            next => next,
        }
    }

    /// Sends what is due; `free_since` is when a connection became free for it, 0 if one always was.
    pub(super) fn due(&mut self, core: &mut Core, free_since: u64) {
        while let Some(intended) = self.next {
            let now = core.clock.now();
            if now >= self.ends {
                return self.give_up(core);
            }
            if intended > now || !self.send(core, intended, now, free_since) {
                return;
            }
            self.next = self.arrivals.next();
        }
    }

    pub(super) fn happened(&mut self, core: &mut Core, happened: Happened) {
        match happened {
            Happened::Nothing => return,
            Happened::Room(key) if core.flights(key) > 0 => return,
            Happened::Room(key) => self.idle[core.group_of(key)].push(key),
            Happened::Gone { .. } => self.forget(core),
        }
        if self.is_blocked {
            self.is_blocked = false;
            let now = core.clock.now();
            self.due(core, now);
        }
    }

    /// Adds the requests whose time has come since the last call to the recorder's count.
    pub(super) fn count_due(&mut self, core: &mut Core, now: u64) {
        while self.next_due.is_some_and(|time| time <= now) {
            core.recorder.tally().counts.due += 1;
            self.next_due = self.due.next();
        }
    }

    /// Whether no request will be sent any more and none is under way.
    pub(super) fn is_over(&self, core: &Core) -> bool {
        self.next.is_none() && core.under_way() == 0
    }

    /// Whether the request went out, or failed in trying; not when no connection is free for it.
    fn send(&mut self, core: &mut Core, intended: u64, now: u64, free_since: u64) -> bool {
        let group = *self.group.get_or_insert_with(|| core.groups.next_group());
        let key = match self.idle[group].pop() {
            Some(key) => {
                core.push(key, intended, now);
                Some(key)
            }
            None if core.open_connections() < self.connections_max || self.make_room(core) => {
                core.open(group, intended, now)
            }
            None => {
                self.is_blocked = true;
                return false;
            }
        };
        self.group = None;
        core.recorder.sent(intended, now, free_since);
        if let Some(key) = key
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
        while let Some(intended) = self.next {
            let lasted = self.ends.saturating_sub(intended);
            core.recorder.failed(FailureKind::NeverSent, lasted, || {
                "the schedule ended first".to_owned()
            });
            self.next = self.arrivals.next();
        }
    }
}
