use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use super::Pressure;

/// A loop keeps a connection unless another has at least this many fewer. With 64 connections on
/// two loops neither so has more than 34, however unevenly the system spread them.
const SLACK: usize = 4;

/// The number of connections of each loop of a server.
#[derive(Debug)]
pub(crate) struct Balance {
    loops: Box<[Count]>,
    all: AtomicUsize,
    all_max: usize,
}

/// On a cache line of its own, so that loops that count do not slow each other.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Count {
    connections: AtomicUsize,
    /// Another loop has none that it could close for a new connection.
    room_wanted: AtomicBool,
    /// The loop's [`Pressure`].
    pressure: AtomicU8,
}

impl Balance {
    pub(crate) fn new(loops: usize, all_max: usize) -> Self {
        Self {
            loops: (0..loops).map(|_| Count::default()).collect(),
            all: AtomicUsize::new(0),
            all_max,
        }
    }

    /// Returns the number of loops.
    pub(crate) fn loops(&self) -> usize {
        self.loops.len()
    }

    /// Counts one more connection, on `index`.
    pub(crate) fn add(&self, index: usize) {
        self.loops[index]
            .connections
            .fetch_add(1, Ordering::Relaxed);
        self.all.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn remove(&self, index: usize) {
        self.loops[index]
            .connections
            .fetch_sub(1, Ordering::Relaxed);
        self.all.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn count(&self, index: usize) -> usize {
        self.loops[index].connections.load(Ordering::Relaxed)
    }

    pub(crate) fn pressure(&self, index: usize) -> Pressure {
        Pressure::from_u8(self.loops[index].pressure.load(Ordering::Relaxed))
    }

    pub(crate) fn set_pressure(&self, index: usize, pressure: Pressure) {
        let kept = &self.loops[index].pressure;
        kept.store(pressure as u8, Ordering::Relaxed);
    }

    /// Has the loops other than `mine` close idle connections of theirs.
    pub(crate) fn want_room(&self, mine: usize) {
        let loops = self.loops.iter().enumerate();
        for (_, other) in loops.filter(|&(index, _)| index != mine) {
            other.room_wanted.store(true, Ordering::Relaxed);
        }
    }

    /// Has all loops close idle connections of theirs.
    pub(crate) fn want_room_of_all(&self) {
        for each in &self.loops {
            each.room_wanted.store(true, Ordering::Relaxed);
        }
    }

    /// Takes the wish of another loop for room from `index`; `true` if there was one.
    pub(crate) fn is_room_wanted(&self, index: usize) -> bool {
        let wanted = &self.loops[index].room_wanted;
        wanted.load(Ordering::Relaxed) && wanted.swap(false, Ordering::Relaxed) && self.is_full()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.all.load(Ordering::Relaxed) >= self.all_max
    }

    /// Chooses the loop for the next connection that `mine` accepted. With `spread`, `mine` accepts
    /// for all, and has no claim of its own. None goes to a loop that is further behind than
    /// another.
    pub(crate) fn choose(&self, mine: usize, spread: bool) -> usize {
        let least = (0..self.loops.len())
            .map(|offset| (mine + offset) % self.loops.len())
            .min_by_key(|&index| (self.pressure(index), self.count(index)))
            .unwrap_or(mine);
        let slack = if spread { 1 } else { SLACK };
        let is_behind = self.pressure(mine) > self.pressure(least);
        if is_behind || self.count(mine) >= self.count(least) + slack {
            least
        } else {
            mine
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_that_all_arrive_at_one_loop_are_spread() {
        let balance = Balance::new(2, usize::MAX);
        let mut held = [0; 2];
        for _ in 0..64 {
            let chosen = balance.choose(0, false);
            balance.add(chosen);
            held[chosen] += 1;
        }
        assert_eq!(held, [34, 30]);
    }

    #[test]
    fn who_accepts_for_all_shares_evenly() {
        let balance = Balance::new(3, usize::MAX);
        let mut held = [0; 3];
        for _ in 0..63 {
            let chosen = balance.choose(0, true);
            balance.add(chosen);
            held[chosen] += 1;
        }
        assert_eq!(held, [21, 21, 21]);
    }

    #[test]
    fn a_loop_that_is_behind_gets_none_while_another_is_not() {
        let balance = Balance::new(3, usize::MAX);
        for index in [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2] {
            balance.add(index);
        }
        balance.set_pressure(0, Pressure::Raised);
        assert_eq!(balance.choose(0, false), 1);
        assert_eq!(balance.choose(2, false), 2);
        balance.set_pressure(1, Pressure::Over);
        assert_eq!(balance.choose(0, true), 2);
        balance.set_pressure(2, Pressure::Over);
        assert_eq!(balance.choose(2, false), 0);
        balance.set_pressure(0, Pressure::None);
        assert_eq!(balance.choose(1, false), 0);
    }

    #[test]
    fn a_server_is_full_at_its_limit() {
        let balance = Balance::new(2, 2);
        balance.add(0);
        assert!(!balance.is_full());
        balance.add(1);
        assert!(balance.is_full());
        balance.remove(0);
        assert!(!balance.is_full());
    }
}
