//! The replies that actors wait for.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use rustc_hash::FxHashMap;
use slab::Slab;
use tokio::time::Instant;

use super::alarm::{Alarm, Clock};
use super::wheel::{AlarmKey, Wheel};
use crate::cell::AnyCell;
use crate::id::ActorId;

const NONE: u32 = u32::MAX;

/// The waits of actors for replies: every operation costs the same however many there are, of one
/// actor too.
///
/// Most replies come at once. So a wait is only noted at first; it begins, gets its alarm and is
/// indexed by its asker when somebody [looks](Self::settle) at alarms or at who waits for whom. The
/// worker does so at the end of each run, so no clock is read for a reply that comes before that.
pub(super) struct Waits {
    entries: Slab<Entry>,
    /// The waits that are only noted: the oldest and the latest of a list.
    noted: (u32, u32),
    /// The latest indexed wait of each actor; the older ones follow it in a list.
    latest: FxHashMap<ActorId, u32>,
}

struct Entry {
    asker: ActorId,
    callee: Arc<dyn AnyCell>,
    state: State,
    /// The neighbours in the one list or the other, where it is later and where it is older.
    later: u32,
    older: u32,
}

enum State {
    Noted(Note),
    Indexed(AlarmKey),
}

/// The time-out of a wait, and the task to wake at the deadline.
pub(super) struct Note {
    pub(super) timeout: Duration,
    pub(super) waker: Waker,
}

/// The key of a wait until it is removed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WaitKey(u32);

/// The remains of a wait, to be dropped outside of the lock.
pub(super) struct Removed {
    _callee: Arc<dyn AnyCell>,
    _waker: Option<Waker>,
    _alarm: Option<Alarm>,
}

impl Waits {
    pub(super) fn new() -> Self {
        Self {
            entries: Slab::new(),
            noted: (NONE, NONE),
            latest: FxHashMap::default(),
        }
    }

    #[inline]
    pub(super) fn note(&mut self, asker: ActorId, callee: Arc<dyn AnyCell>, note: Note) -> WaitKey {
        let older = self.noted.1;
        let entry = Entry {
            asker,
            callee,
            state: State::Noted(note),
            later: NONE,
            older,
        };
        let index = u32::try_from(self.entries.insert(entry)).expect("fewer than 2^32 questions");
        match older {
            NONE => self.noted.0 = index,
            older => self.entries[older as usize].later = index,
        }
        self.noted.1 = index;
        WaitKey(index)
    }

    /// Returns `true` if there are waits that are only noted.
    #[inline]
    pub(super) fn has_noted(&self) -> bool {
        self.noted.0 != NONE
    }

    /// Lets the waits that are only noted begin: sets their alarms, and indexes them.
    pub(super) fn settle(&mut self, wheel: &mut Wheel<Alarm>, clock: Clock, now: Instant) {
        let (mut next, _) = std::mem::replace(&mut self.noted, (NONE, NONE));
        // The oldest first, so that the latest comes to lie in front.
        while next != NONE {
            let index = next;
            let entry = &mut self.entries[index as usize];
            let older = self.latest.insert(entry.asker, index).unwrap_or(NONE);
            next = std::mem::replace(&mut entry.later, NONE);
            entry.older = older;
            entry.set_alarm(wheel, clock, now);
            if let Some(older) = self.entries.get_mut(older as usize) {
                older.later = index;
            }
        }
    }

    #[inline]
    pub(super) fn remove(&mut self, WaitKey(index): WaitKey, wheel: &mut Wheel<Alarm>) -> Removed {
        let entry = self.entries.remove(index as usize);
        if let Some(older) = self.entries.get_mut(entry.older as usize) {
            older.later = entry.later;
        }
        if let Some(later) = self.entries.get_mut(entry.later as usize) {
            later.older = entry.older;
        }
        let (waker, alarm) = match entry.state {
            State::Noted(Note { waker, .. }) => {
                self.leave_noted(index, entry.later, entry.older);
                (Some(waker), None)
            }
            State::Indexed(alarm) => {
                self.leave_index(entry.asker, entry.later, entry.older);
                (None, wheel.cancel(alarm))
            }
        };
        Removed {
            _callee: entry.callee,
            _waker: waker,
            _alarm: alarm,
        }
    }

    /// Returns the waker that is woken at the deadline, if that is not past.
    pub(super) fn waker<'a>(
        &'a mut self,
        WaitKey(index): &WaitKey,
        wheel: &'a mut Wheel<Alarm>,
    ) -> Option<&'a mut Waker> {
        match &mut self.entries[*index as usize].state {
            State::Noted(Note { waker, .. }) => Some(waker),
            State::Indexed(alarm) => match wheel.find(*alarm) {
                Some(Alarm::Wake(waker)) => Some(waker),
                _ => None,
            },
        }
    }

    /// Returns the callee of this actor's latest wait. All must be indexed.
    pub(super) fn of(&self, asker: ActorId) -> Option<Arc<dyn AnyCell>> {
        let index = *self.latest.get(&asker)?;
        Some(Arc::clone(&self.entries[index as usize].callee))
    }

    fn leave_noted(&mut self, index: u32, later: u32, older: u32) {
        if self.noted.0 == index {
            self.noted.0 = later;
        }
        if self.noted.1 == index {
            self.noted.1 = older;
        }
    }

    fn leave_index(&mut self, asker: ActorId, later: u32, older: u32) {
        match (later, older) {
            (NONE, NONE) => {
                self.latest.remove(&asker);
            }
            (NONE, older) => {
                self.latest.insert(asker, older);
            }
            _ => {}
        }
    }
}

impl Entry {
    fn set_alarm(&mut self, wheel: &mut Wheel<Alarm>, clock: Clock, now: Instant) {
        // No alarm has this key. It stays for no longer than this function.
        let state = std::mem::replace(&mut self.state, State::Indexed(AlarmKey::NONE));
        if let State::Noted(note) = state {
            let deadline = clock.millisecond_after(super::moment(now, note.timeout));
            self.state = State::Indexed(wheel.set(deadline, Alarm::Wake(note.waker)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Actor, ActorSystem};

    const ORDERS: [[usize; 3]; 6] = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];

    struct Callee;

    impl Actor for Callee {}

    /// Asks three in a row beside another actor that asks one, and ends the three in this order.
    /// After each step it finds the latest that is left, if `is_found`.
    fn ask_three(system: &ActorSystem, order: [usize; 3], is_found: bool) {
        let callees = [(); 3].map(|()| system.spawn(|| Callee));
        let (mut waits, mut wheel) = (Waits::new(), Wheel::new());
        let note = |waits: &mut Waits, asker, callee: usize| {
            let callee = Arc::clone(&callees[callee].0) as _;
            let note = Note {
                timeout: Duration::from_secs(1),
                waker: Waker::noop().clone(),
            };
            waits.note(ActorId(asker), callee, note)
        };
        let other = note(&mut waits, 2, 0);
        let mut keys = [0, 1, 2].map(|callee| Some(note(&mut waits, 1, callee)));
        for (gone, place) in order.into_iter().enumerate() {
            let latest = order[gone..].iter().max();
            let latest = latest.map(|latest| callees[*latest].id());
            if is_found {
                waits.settle(&mut wheel, Clock::new(), Instant::now());
                assert_eq!(waits.of(ActorId(1)).map(|callee| callee.id()), latest);
            }
            let key = keys[place].take().expect("each goes once");
            assert!(waits.waker(&key, &mut wheel).is_some());
            drop(waits.remove(key, &mut wheel));
        }
        assert!(waits.of(ActorId(1)).is_none());
        drop(waits.remove(other, &mut wheel));
        assert!(waits.entries.is_empty() && waits.latest.is_empty());
        assert!(waits.noted == (NONE, NONE) && wheel.earliest().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn the_latest_question_that_is_left_is_found_in_whatever_order_the_others_go() {
        let system = ActorSystem::new().expect("there is a runtime");
        for order in ORDERS {
            ask_three(&system, order, true);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn questions_that_nobody_looked_at_leave_nothing_behind() {
        let system = ActorSystem::new().expect("there is a runtime");
        for order in ORDERS {
            ask_three(&system, order, false);
        }
    }
}
