//! Deadlines of many connections, to the precision of a tick, without a timer for each.

use std::cell::Cell;
use std::rc::Rc;

/// Slots of the wheel. A deadline farther away than this many ticks is looked at again on the way.
const SLOTS: u32 = 512;

/// A moment in a loop's own time, which stands still while the loop does.
pub(crate) type Tick = u32;

/// A deadline that never comes.
pub(crate) const NEVER: Tick = Tick::MAX;

/// The ticks of a loop so far, for all that it serves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock(Rc<Cell<Tick>>);

impl Clock {
    pub(crate) fn now(&self) -> Tick {
        self.0.get()
    }

    /// Goes on by a tick, to what is returned.
    pub(crate) fn tick(&self) -> Tick {
        self.0.set(self.0.get() + 1);
        self.0.get()
    }
}

/// A timer wheel: keys by the tick at which to look at them. Moving a deadline into the future
/// costs nothing: the key is found early, and put back.
#[derive(Debug)]
pub(crate) struct Wheel {
    slots: Vec<Vec<u32>>,
}

/// A key's place: its deadline, and the tick at which the wheel will look at it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) deadline: Tick,
    looked_at: Tick,
}

impl Default for Place {
    fn default() -> Self {
        Self {
            deadline: NEVER,
            looked_at: NEVER,
        }
    }
}

impl Default for Wheel {
    fn default() -> Self {
        Self {
            slots: (0..SLOTS).map(|_| Vec::new()).collect(),
        }
    }
}

impl Wheel {
    /// Sets the deadline of `key`; at `now` or before counts as the next tick.
    pub(crate) fn set(&mut self, key: u32, place: &mut Place, deadline: Tick, now: Tick) {
        place.deadline = deadline;
        if deadline.max(now + 1) < place.looked_at {
            self.look_at(key, place, now);
        }
    }

    fn look_at(&mut self, key: u32, place: &mut Place, now: Tick) {
        place.looked_at = place.deadline.clamp(now + 1, now + SLOTS - 1);
        self.slots[(place.looked_at % SLOTS) as usize].push(key);
    }

    /// The keys to be looked at in tick `now`, which must be the one after the last.
    pub(crate) fn turn(&mut self, now: Tick) -> Vec<u32> {
        std::mem::take(&mut self.slots[(now % SLOTS) as usize])
    }

    /// Looks at a key that [`turn`](Self::turn) gave; `true` if its deadline has come. If it moved,
    /// the key is put where it belongs now.
    pub(crate) fn is_due(&mut self, key: u32, place: &mut Place, now: Tick) -> bool {
        // A key whose deadline moved nearer stands in two slots; the old one counts no more.
        if place.looked_at != now {
            return false;
        }
        place.looked_at = NEVER;
        if place.deadline <= now {
            place.deadline = NEVER;
            return true;
        }
        if place.deadline != NEVER {
            self.look_at(key, place, now);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tick at which the only key of a wheel comes due.
    fn due_at(wheel: &mut Wheel, place: &mut Place, from: Tick, to: Tick) -> Option<Tick> {
        (from..=to).find(|&now| {
            let keys = wheel.turn(now);
            keys.into_iter().any(|key| wheel.is_due(key, place, now))
        })
    }

    #[test]
    fn a_deadline_comes_at_its_tick_however_far_away() {
        for deadline in [1, 2, 40, 511, 512, 513, 5_000] {
            let (mut wheel, mut place) = (Wheel::default(), Place::default());
            wheel.set(7, &mut place, deadline, 0);
            assert_eq!(due_at(&mut wheel, &mut place, 1, 6_000), Some(deadline));
        }
    }

    #[test]
    fn a_deadline_that_moves_on_comes_once_and_late() {
        let (mut wheel, mut place) = (Wheel::default(), Place::default());
        wheel.set(7, &mut place, 10, 0);
        wheel.set(7, &mut place, 30, 5);
        assert_eq!(due_at(&mut wheel, &mut place, 6, 100), Some(30));
        assert_eq!(due_at(&mut wheel, &mut place, 101, 2_000), None);
    }

    #[test]
    fn a_deadline_that_moves_nearer_comes_early() {
        let (mut wheel, mut place) = (Wheel::default(), Place::default());
        wheel.set(7, &mut place, 300, 0);
        wheel.set(7, &mut place, 10, 5);
        assert_eq!(due_at(&mut wheel, &mut place, 6, 1_000), Some(10));
    }

    #[test]
    fn a_deadline_taken_back_never_comes() {
        let (mut wheel, mut place) = (Wheel::default(), Place::default());
        wheel.set(7, &mut place, 10, 0);
        wheel.set(7, &mut place, NEVER, 5);
        assert_eq!(due_at(&mut wheel, &mut place, 6, 2_000), None);
    }

    #[test]
    fn a_key_that_was_given_to_another_does_not_come_due_early() {
        let (mut wheel, mut place) = (Wheel::default(), Place::default());
        wheel.set(7, &mut place, 10, 0);
        let mut other = Place::default();
        wheel.set(7, &mut other, 50, 5);
        assert_eq!(due_at(&mut wheel, &mut other, 6, 1_000), Some(50));
    }
}
