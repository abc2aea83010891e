use std::cell::Cell;
use std::time::Duration;

use crate::connection::Taking;
use crate::event_loop::{TICK, Tick, tick_after};

/// The obstacle that the unsent responses of a connection wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// The client, to open the connection's window: it is slow with all streams together.
    ConnectionWindow,
    /// The server, or the system, which tells by itself of a client that takes nothing.
    Server,
    /// The client, to open each stream's window.
    StreamWindow,
}

/// Bytes held for a client, of a stream or of all, and the time by which it is behind with them.
#[derive(Debug)]
pub(in crate::handover) struct Owed {
    held: Cell<usize>,
    /// Bytes that the client took.
    taken: Cell<u64>,
    taking: Cell<Taking>,
    /// The tick up to which time has been counted.
    since: Cell<Tick>,
}

impl Owed {
    pub(in crate::handover) fn new(now: Tick) -> Self {
        Self {
            held: Cell::new(0),
            taken: Cell::new(0),
            taking: Cell::default(),
            since: Cell::new(now),
        }
    }

    pub(in crate::handover) fn held(&self) -> usize {
        self.held.get()
    }

    pub(in crate::handover) fn hold(&self, bytes: usize) {
        self.held.set(self.held.get() + bytes);
    }

    pub(in crate::handover) fn release(&self, bytes: usize) {
        self.held.set(self.held.get() - bytes);
    }

    pub(in crate::handover) fn note_taken(&self, bytes: usize) {
        self.taken.set(self.taken.get() + bytes as u64);
    }

    /// Counts what was taken, and the time up to `now` if it is the client that was waited for.
    pub(in crate::handover) fn settle(&self, now: Tick, counts: bool, rate_min: u64) {
        let ticks = now - self.since.replace(now);
        let waited = if counts && self.held.get() > 0 {
            TICK * ticks
        } else {
            Duration::ZERO
        };
        let mut taking = self.taking.get();
        taking.settle(waited, self.taken.get(), rate_min);
        self.taking.set(taking);
    }

    /// Returns the tick at which a client that takes nothing more is given up, if settled at this
    /// one.
    pub(in crate::handover) fn taken_until(&self, write_timeout: Duration) -> Tick {
        tick_after(self.since.get(), self.taking.get().left(write_timeout))
    }

    /// Returns `true` if the client is behind by `write_timeout`; a tick more, since it may have
    /// begun late in the first that was counted.
    pub(in crate::handover) fn is_behind_by(&self, write_timeout: Duration) -> bool {
        let time = write_timeout.saturating_add(TICK);
        self.taking.get().is_behind_by(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const TICKS: Tick = 4;

    #[test]
    fn who_takes_nothing_is_behind_after_the_time_and_a_tick() {
        let owed = Owed::new(7);
        owed.hold(10);
        for now in 7..7 + 30 * TICKS {
            owed.settle(now, true, 1_000);
            assert_eq!(owed.taken_until(30 * SECOND), 7 + 30 * TICKS + 1);
        }
        owed.settle(7 + 30 * TICKS, true, 1_000);
        assert!(!owed.is_behind_by(30 * SECOND));
        owed.settle(7 + 30 * TICKS + 1, true, 1_000);
        assert!(owed.is_behind_by(30 * SECOND));
    }

    #[test]
    fn time_in_which_nothing_is_held_or_another_is_waited_for_does_not_count() {
        let owed = Owed::new(0);
        owed.settle(1_000, true, 1_000);
        owed.hold(10);
        owed.settle(2_000, false, 1_000);
        assert_eq!(owed.taken_until(SECOND), 2_000 + TICKS + 1);
    }
}
