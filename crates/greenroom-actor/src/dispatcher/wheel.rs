//! A timing wheel of alarms, by the millisecond.

use slab::Slab;

/// The milliseconds of one turn of the wheel. Items further away stay in their slot for more turns.
const SLOTS: u64 = 1_024;
const SLOT_COUNT: usize = 1_024;
const NONE: u32 = u32::MAX;

/// Items with a deadline in milliseconds, in a hashed timing wheel (Varghese and Lauck, 1987,
/// scheme 6): setting and cancelling cost the same however many there are.
pub(super) struct Wheel<T> {
    slots: Box<[u32]>,
    entries: Slab<Entry<T>>,
    /// All deadlines up to this one are dealt with.
    now: u64,
    /// No deadline is before this one.
    earliest: u64,
    set: u32,
}

struct Entry<T> {
    deadline: u64,
    generation: u32,
    before: u32,
    after: u32,
    item: T,
}

/// The key of an item; never of another one, not even when the item is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AlarmKey {
    index: u32,
    generation: u32,
}

impl AlarmKey {
    /// The key of nothing.
    pub(super) const NONE: Self = Self {
        index: NONE,
        generation: 0,
    };
}

impl<T> Wheel<T> {
    pub(super) fn new() -> Self {
        let slots = vec![NONE; SLOT_COUNT].into_boxed_slice();
        Self {
            slots,
            entries: Slab::new(),
            now: 0,
            earliest: u64::MAX,
            set: 0,
        }
    }

    /// Sets an item for this millisecond, or for the next if that is past.
    pub(super) fn set(&mut self, deadline: u64, item: T) -> AlarmKey {
        // The slots up to `now` were emptied already.
        let deadline = deadline.max(self.now + 1);
        let slot = slot(deadline);
        let after = self.slots[slot];
        // Counts all items and not those of an index, which is used again.
        self.set = self.set.wrapping_add(1);
        let generation = self.set;
        let entry = Entry {
            deadline,
            generation,
            before: NONE,
            after,
            item,
        };
        let index = u32::try_from(self.entries.insert(entry)).expect("fewer than 2^32 alarms");
        if after != NONE {
            self.entries[after as usize].before = index;
        }
        self.slots[slot] = index;
        self.earliest = self.earliest.min(deadline);
        AlarmKey { index, generation }
    }

    pub(super) fn cancel(&mut self, key: AlarmKey) -> Option<T> {
        self.find(key)?;
        Some(self.remove(key.index).item)
    }

    pub(super) fn find(&mut self, key: AlarmKey) -> Option<&mut T> {
        let entry = self.entries.get_mut(key.index as usize)?;
        (entry.generation == key.generation).then_some(&mut entry.item)
    }

    /// Takes out all items whose deadline is not after `now`.
    pub(super) fn advance(&mut self, now: u64, due: &mut Vec<T>) {
        if now >= self.earliest {
            let passed = now.saturating_sub(self.now).min(SLOTS);
            for millisecond in now - passed + 1..=now {
                self.empty_slot(slot(millisecond), now, due);
            }
        }
        self.now = self.now.max(now);
        if now >= self.earliest {
            self.earliest = self.next().unwrap_or(u64::MAX);
        }
    }

    /// Returns a millisecond before which there is no deadline; it may be that none is at it
    /// either.
    pub(super) fn earliest(&self) -> Option<u64> {
        (!self.entries.is_empty()).then_some(self.earliest)
    }

    fn empty_slot(&mut self, slot: usize, now: u64, due: &mut Vec<T>) {
        let mut index = self.slots[slot];
        while index != NONE {
            let entry = &self.entries[index as usize];
            let (after, is_due) = (entry.after, entry.deadline <= now);
            if is_due {
                due.push(self.remove(index).item);
            }
            index = after;
        }
    }

    fn next(&self) -> Option<u64> {
        if self.entries.is_empty() {
            return None;
        }
        let mut ahead = self.now + 1..=self.now + SLOTS;
        ahead.find(|&millisecond| self.slots[slot(millisecond)] != NONE)
    }

    pub(super) fn take_all(&mut self) -> Vec<T> {
        self.slots.fill(NONE);
        self.earliest = u64::MAX;
        self.entries.drain().map(|entry| entry.item).collect()
    }

    fn remove(&mut self, index: u32) -> Entry<T> {
        let entry = self.entries.remove(index as usize);
        match entry.before {
            NONE => self.slots[slot(entry.deadline)] = entry.after,
            before => self.entries[before as usize].after = entry.after,
        }
        if entry.after != NONE {
            self.entries[entry.after as usize].before = entry.before;
        }
        entry
    }
}

fn slot(millisecond: u64) -> usize {
    (millisecond % SLOTS) as usize
}
