//! The pace at which a client takes what is sent to it.

use std::time::Duration;

use super::Connection;
use super::waiting::Wait;
use crate::app::App;
use crate::body::allowance;
use crate::event_loop::{Tick, tick_after};

/// The time by which a client is behind with taking what is sent to it.
///
/// Time in which the client is waited for counts against it, and each byte that it takes earns some
/// of it back. It gains nothing in advance: a client that has taken gigabytes may stop for no
/// longer than one that has just begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taking {
    behind: Duration,
    /// Bytes taken that have been counted.
    counted: u64,
}

impl Taking {
    /// Counts that the client was `waited` for, and has taken so many bytes since the connection
    /// began.
    pub(crate) fn settle(&mut self, waited: Duration, taken: u64, rate_min: u64) {
        let bytes = taken - self.counted;
        self.counted = taken;
        let earned = match bytes {
            0 => Duration::ZERO,
            bytes => allowance(Duration::ZERO, rate_min, bytes),
        };
        self.behind = self.behind.saturating_add(waited).saturating_sub(earned);
    }

    /// Returns the time for which the client may take nothing, if it may be behind by
    /// `write_timeout`.
    pub(crate) fn left(&self, write_timeout: Duration) -> Duration {
        write_timeout.saturating_sub(self.behind)
    }

    /// Returns `true` if the client is behind by `time`.
    pub(crate) fn is_behind_by(&self, time: Duration) -> bool {
        self.behind >= time
    }
}

impl<A: App> Connection<A> {
    /// Begins to wait for the client: what it has taken before counts no more.
    pub(super) fn count_taken_before(&mut self) {
        self.settle_taking(Duration::ZERO);
    }

    /// Counts what the client has taken, and the time in which it was waited for.
    pub(super) fn count_taken(&mut self) {
        let waited = match self.waiting.wait {
            Wait::Write => self.home.age(self.waiting.since),
            _ => Duration::ZERO,
        };
        self.settle_taking(waited);
        self.waiting.restart(self.home.now());
    }

    fn settle_taking(&mut self, waited: Duration) {
        let rate_min = self.home.settings.limits.response_rate_min;
        let taking = self.taking.get_or_insert_default();
        taking.settle(waited, self.outbox.taken(), rate_min);
    }

    /// Looks whether the client has taken something; `true` if it is to be given up.
    pub(super) fn is_taken_too_slowly(&mut self) -> bool {
        let before = self.outbox.taken();
        // A broken socket takes nothing.
        let _looked = self.outbox.look(&mut self.socket);
        if self.outbox.taken() > before {
            self.count_taken();
        }
        self.home.now() >= self.taken_until()
    }

    /// Returns the tick at which to look next whether the client has taken something: after as long
    /// again as it has been waited for, since most do so at once or not for a while.
    pub(super) fn next_look(&self) -> Tick {
        let now = self.home.now();
        let waited = now - self.waiting.since;
        now.saturating_add(waited.max(1)).min(self.taken_until())
    }

    /// Returns the tick at which a client that takes nothing more is given up.
    fn taken_until(&self) -> Tick {
        let write_timeout = self.home.settings.limits.write_timeout;
        let left = self.taking.as_ref();
        let left = left.map_or(write_timeout, |taking| taking.left(write_timeout));
        tick_after(self.waiting.since, left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns the time by which a client is behind after so many steps of seconds and bytes.
    fn behind(steps: &[(u32, u64)], rate_min: u64) -> Duration {
        let mut taking = Taking::default();
        let mut taken = 0;
        for (seconds, bytes) in steps {
            taken += bytes;
            taking.settle(*seconds * SECOND, taken, rate_min);
        }
        taking.behind
    }

    #[test]
    fn twelve_hundred_bytes_in_a_second_and_a_half_are_too_few() {
        assert_eq!(behind(&[(15, 12_000); 10], 1_000), 30 * SECOND);
        assert_eq!(behind(&[(15, 15_000); 10], 1_000), Duration::ZERO);
    }

    #[test]
    fn nothing_is_gained_in_advance() {
        assert_eq!(behind(&[(1, 1 << 40), (7, 0)], 1_000), 7 * SECOND);
    }

    #[test]
    fn without_a_rate_any_byte_will_do() {
        assert_eq!(behind(&[(29, 1); 10], 0), Duration::ZERO);
        assert_eq!(behind(&[(29, 1), (30, 0)], 0), 30 * SECOND);
    }
}
