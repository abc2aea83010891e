use std::num::NonZeroU32;
use std::task::{Context, Waker};

use slab::Slab;

use super::wheel::{NEVER, Place, Tick, Wheel};

/// The connections of a loop that wait for something.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    entries: Slab<Entry>,
    wheel: Wheel,
}

/// The key of a connection's entry: its index, counted from 1, so that none takes no room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key(NonZeroU32);

#[derive(Debug)]
struct Entry {
    waker: Waker,
    place: Place,
    /// The tick since which the connection has been idle between requests.
    idle_since: Option<Tick>,
    expired: bool,
    evicted: bool,
}

/// A message of the loop to a connection that it wakes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Notice {
    /// Its deadline passed.
    pub(crate) expired: bool,
    /// Its descriptor is needed for another.
    pub(crate) evicted: bool,
}

/// Divisor of the idle connections for those that are closed at a time: a sixteenth.
const EVICTED_SHARE: usize = 16;

impl Key {
    fn of(index: usize) -> Self {
        let key = u32::try_from(index + 1).ok().and_then(NonZeroU32::new);
        Self(key.expect("a process has fewer than 2^32 descriptors"))
    }

    fn index(self) -> u32 {
        self.0.get() - 1
    }
}

impl Registry {
    pub(crate) fn add(&mut self) -> Key {
        let index = self.entries.insert(Entry {
            waker: Waker::noop().clone(),
            place: Place::default(),
            idle_since: None,
            expired: false,
            evicted: false,
        });
        Key::of(index)
    }

    pub(crate) fn remove(&mut self, key: Key) {
        self.entries.remove(key.index() as usize);
    }

    /// Takes the notice for `key`. `cx` is its task from now on.
    pub(crate) fn notice(&mut self, key: Key, cx: &Context<'_>) -> Notice {
        let entry = &mut self.entries[key.index() as usize];
        if !entry.waker.will_wake(cx.waker()) {
            entry.waker.clone_from(cx.waker());
        }
        entry.idle_since = None;
        Notice {
            expired: std::mem::take(&mut entry.expired),
            evicted: std::mem::take(&mut entry.evicted),
        }
    }

    /// Has `key` wait until `deadline`; between requests, with the tick since which it has been
    /// idle.
    pub(crate) fn wait(&mut self, key: Key, deadline: Tick, idle_since: Option<Tick>, now: Tick) {
        let index = key.index();
        let entry = &mut self.entries[index as usize];
        entry.idle_since = idle_since;
        self.wheel.set(index, &mut entry.place, deadline, now);
    }

    /// Wakes the connections whose deadline is `now`.
    pub(crate) fn turn(&mut self, now: Tick) {
        for key in self.wheel.turn(now) {
            let Some(entry) = self.entries.get_mut(key as usize) else {
                continue;
            };
            if self.wheel.is_due(key, &mut entry.place, now) {
                entry.expired = true;
                entry.waker.wake_by_ref();
            }
        }
    }

    pub(crate) fn wake_all(&self) {
        for (_, entry) in &self.entries {
            entry.waker.wake_by_ref();
        }
    }

    /// Has the connections that are idle longest end: a sixteenth of the idle ones, at least one if
    /// there is one. Returns their number.
    pub(crate) fn evict_idle(&mut self) -> usize {
        let mut idle: Vec<(Tick, usize)> = self
            .entries
            .iter()
            .filter(|(_, entry)| !entry.evicted)
            .filter_map(|(key, entry)| entry.idle_since.map(|since| (since, key)))
            .collect();
        idle.sort_unstable();
        idle.truncate(idle.len().div_ceil(EVICTED_SHARE));
        for (_, key) in &idle {
            let entry = &mut self.entries[*key];
            entry.evicted = true;
            entry.place.deadline = NEVER;
            entry.waker.wake_by_ref();
        }
        idle.len()
    }
}
