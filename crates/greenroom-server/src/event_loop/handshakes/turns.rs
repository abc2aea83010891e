//! The turns of the handshakes that have to wait. Knows neither the runtime nor time.

use std::collections::{HashMap, VecDeque};

use crate::addresses::Owner;

/// The order of those that wait. `W` wakes one.
#[derive(Debug)]
pub(super) struct Turns<W> {
    /// Handshakes that have begun.
    begun: VecDeque<W>,
    /// Those that have not, by the owner of their address; `None` is whoever comes by a Unix
    /// socket. None of the queues is empty.
    new: HashMap<Option<Owner>, VecDeque<W>>,
    /// The owners that have some, the next one first.
    owners: VecDeque<Option<Owner>>,
    /// Handshakes that have not begun.
    new_count: usize,
    /// The turn before was one that had begun.
    was_begun: bool,
}

impl<W> Default for Turns<W> {
    fn default() -> Self {
        Self {
            begun: VecDeque::new(),
            new: HashMap::new(),
            owners: VecDeque::new(),
            new_count: 0,
            was_begun: false,
        }
    }
}

impl<W> Turns<W> {
    /// Returns how many turns a new handshake of `owner` would wait for, at most.
    pub(super) fn ahead(&self, owner: Option<Owner>) -> usize {
        let own = self.new.get(&owner).map_or(0, VecDeque::len);
        let others = self.owners.len() - usize::from(own > 0);
        // Of the others no more go first than of its own.
        let new = self.new_count.min(own + (own + 1) * others);
        new + self.begun.len().min(new + 1)
    }

    pub(super) fn wait_begun(&mut self, waker: W) {
        self.begun.push_back(waker);
    }

    /// Has a new handshake wait. If there are `count_max` already, one of the owner with the most
    /// has to go for it, or itself if that is its owner: that one is returned.
    pub(super) fn wait_new(
        &mut self,
        owner: Option<Owner>,
        waker: W,
        count_max: usize,
    ) -> Option<W> {
        let removed = if self.new_count < count_max {
            None
        } else {
            let own = self.new.get(&owner).map_or(0, VecDeque::len);
            match self.longest() {
                Some((longest, length)) if length > own + 1 => self.remove_last(longest),
                _ => return Some(waker),
            }
        };
        let queue = self.new.entry(owner).or_default();
        if queue.is_empty() {
            self.owners.push_back(owner);
        }
        queue.push_back(waker);
        self.new_count += 1;
        removed
    }

    fn longest(&self) -> Option<(Option<Owner>, usize)> {
        let lengths = self.new.iter().map(|(owner, queue)| (*owner, queue.len()));
        lengths.max_by_key(|(_, length)| *length)
    }

    fn remove_last(&mut self, owner: Option<Owner>) -> Option<W> {
        let last = self.new.get_mut(&owner)?.pop_back()?;
        self.new_count -= 1;
        if self.new.get(&owner).is_some_and(VecDeque::is_empty) {
            self.new.remove(&owner);
            self.owners.retain(|other| *other != owner);
        }
        Some(last)
    }

    /// Takes the next: one that has begun and one that has not by turns, the latter by owner.
    pub(super) fn next(&mut self) -> Option<W> {
        self.was_begun = !self.was_begun && !self.begun.is_empty();
        if self.was_begun {
            return self.begun.pop_front();
        }
        self.next_new().or_else(|| self.begun.pop_front())
    }

    fn next_new(&mut self) -> Option<W> {
        let owner = self.owners.pop_front()?;
        let queue = self.new.get_mut(&owner)?;
        let next = queue.pop_front();
        self.new_count -= 1;
        if queue.is_empty() {
            self.new.remove(&owner);
        } else {
            self.owners.push_back(owner);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn owner(last: u8) -> Owner {
        Owner::of(Ipv4Addr::new(192, 0, 2, last).into())
    }

    /// Returns the turns of all that wait.
    fn all(turns: &mut Turns<&'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| turns.next()).collect()
    }

    #[test]
    fn addresses_take_turns() {
        let mut turns = Turns::default();
        for (last, name) in [
            (1, "a1"),
            (1, "a2"),
            (1, "a3"),
            (2, "b1"),
            (3, "c1"),
            (2, "b2"),
        ] {
            assert_eq!(turns.wait_new(Some(owner(last)), name, 10), None);
        }
        assert_eq!(all(&mut turns), ["a1", "b1", "c1", "a2", "b2", "a3"]);
        assert_eq!(turns.ahead(Some(owner(1))), 0);
    }

    #[test]
    fn a_flood_is_one_turn_ahead_of_a_new_client() {
        let mut turns = Turns::default();
        for _ in 0..50 {
            assert_eq!(turns.wait_new(Some(owner(1)), "flood", 100), None);
        }
        assert_eq!(
            (turns.ahead(Some(owner(2))), turns.ahead(Some(owner(1)))),
            (1, 50)
        );
        turns.wait_new(Some(owner(2)), "other", 100);
        assert_eq!(
            (turns.ahead(Some(owner(2))), turns.ahead(Some(owner(3)))),
            (3, 2)
        );
    }

    #[test]
    fn a_full_queue_loses_the_last_of_whoever_has_most() {
        let mut turns = Turns::default();
        for name in ["a1", "a2", "a3"] {
            assert_eq!(turns.wait_new(Some(owner(1)), name, 3), None);
        }
        assert_eq!(turns.wait_new(Some(owner(1)), "a4", 3), Some("a4"));
        assert_eq!(turns.wait_new(Some(owner(2)), "b1", 3), Some("a3"));
        assert_eq!(turns.wait_new(Some(owner(3)), "c1", 3), Some("a2"));
        assert_eq!(turns.wait_new(Some(owner(4)), "d1", 3), Some("d1"));
        assert_eq!(turns.wait_new(Some(owner(1)), "a5", 3), Some("a5"));
        assert_eq!(all(&mut turns), ["a1", "b1", "c1"]);
    }

    #[test]
    fn those_that_began_take_every_other_turn() {
        let mut turns = Turns::default();
        for name in ["x", "y", "z"] {
            turns.wait_begun(name);
        }
        turns.wait_new(Some(owner(1)), "a1", 9);
        turns.wait_new(Some(owner(1)), "a2", 9);
        assert_eq!(turns.ahead(Some(owner(2))), 3);
        assert_eq!(all(&mut turns), ["x", "a1", "y", "a2", "z"]);
    }
}
