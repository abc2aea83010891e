//! The messages that a consumer has in flight: whether they get on, and which holds up the rest.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::consumer::HANDLED_WITHIN;

/// The messages of which a node remembers how often they failed there. Beyond it the oldest is
/// forgotten.
const FAILURES_MAX: usize = 65_536;

/// The messages in flight at one consumer.
///
/// Each may wait for those before it as long as it takes: an actor may handle them one after the
/// other. When none was handled for [`HANDLED_WITHIN`], all are given up, and the oldest
/// is blamed.
#[derive(Debug)]
pub(super) struct Flight {
    state: Mutex<State>,
    /// The messages that were given up, and which the actor has all the same.
    given_up: watch::Sender<usize>,
}

#[derive(Debug)]
struct State {
    next: u64,
    begun: BTreeSet<u64>,
    /// The moment when the last one was handled.
    last: Option<Instant>,
    /// The moment when one was blamed.
    blamed: Option<Instant>,
    /// The failures of messages, by their numbers in the stream.
    failures: BTreeMap<u64, u32>,
}

/// One message in flight, until it is dropped.
#[derive(Debug)]
pub(super) struct InFlight<'a> {
    flight: &'a Flight,
    number: u64,
    begun: Instant,
}

impl Flight {
    pub(super) fn new() -> Self {
        let state = State {
            next: 0,
            begun: BTreeSet::new(),
            last: None,
            blamed: None,
            failures: BTreeMap::new(),
        };
        Self {
            state: Mutex::new(state),
            given_up: watch::Sender::new(0),
        }
    }

    /// Counts a message as given up, until the guard is dropped.
    pub(super) fn give_up(&self) -> GivenUp<'_> {
        self.given_up.send_modify(|count| *count += 1);
        GivenUp(self)
    }

    /// Waits until no message is given up that the actor still has.
    pub(super) async fn goes_on(&self) {
        let mut given_up = self.given_up.subscribe();
        // The sender is in `self`, so the wait cannot fail.
        let _none = given_up.wait_for(|count| *count == 0).await;
    }

    pub(super) fn begin(&self) -> InFlight<'_> {
        let mut state = self.state.lock();
        let number = state.next;
        state.next += 1;
        state.begun.insert(number);
        InFlight {
            flight: self,
            number,
            begun: Instant::now(),
        }
    }

    /// Notes that a handler has ended, whatever with.
    pub(super) fn is_handled(&self) {
        self.state.lock().last = Some(Instant::now());
    }

    /// Counts a failure of the message of this number in the stream, and returns how many it has.
    pub(super) fn failed(&self, sequence: u64) -> u32 {
        let mut state = self.state.lock();
        let failures = state.failures.entry(sequence).or_insert(0);
        *failures += 1;
        let failures = *failures;
        if state.failures.len() > FAILURES_MAX {
            state.failures.pop_first();
        }
        failures
    }

    /// Forgets the failures of a message that does not come again.
    pub(super) fn forget(&self, sequence: u64) {
        self.state.lock().failures.remove(&sequence);
    }
}

/// A message that was given up, and which the actor has.
#[derive(Debug)]
pub(super) struct GivenUp<'a>(&'a Flight);

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        self.0.given_up.send_modify(|count| *count -= 1);
    }
}

impl InFlight<'_> {
    /// Waits until nothing was handled for too long. Returns `true` if this message is blamed.
    pub(super) async fn stalled(&self) -> bool {
        loop {
            let last = self.flight.state.lock().last;
            let since = last.map_or(self.begun, |last| last.max(self.begun));
            if since.elapsed() >= HANDLED_WITHIN {
                return self.is_blamed();
            }
            sleep_until(since + HANDLED_WITHIN).await;
        }
    }

    /// Blames this message if it is the oldest, and none was blamed for the same standstill.
    fn is_blamed(&self) -> bool {
        let mut state = self.flight.state.lock();
        let is_known = state.blamed.is_some_and(|blamed| {
            state.last.is_none_or(|last| last < blamed) && blamed.elapsed() < HANDLED_WITHIN
        });
        if is_known || state.begun.first() != Some(&self.number) {
            return false;
        }
        state.blamed = Some(Instant::now());
        true
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.flight.state.lock().begun.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{advance, timeout};

    use super::*;

    const MOMENT: Duration = Duration::from_millis(10);

    #[tokio::test(start_paused = true)]
    async fn messages_may_wait_as_long_as_others_are_handled() {
        let flight = Flight::new();
        let (_one, other) = (flight.begin(), flight.begin());
        for _ in 0..10 {
            let waited = timeout(HANDLED_WITHIN.saturating_sub(MOMENT), other.stalled()).await;
            assert!(waited.is_err(), "it gets on");
            flight.is_handled();
        }
        assert!(!other.stalled().await, "the older one is to blame");
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_alone_is_blamed_for_a_standstill() {
        let flight = Flight::new();
        let first = flight.begin();
        advance(MOMENT).await;
        let (second, third) = (flight.begin(), flight.begin());
        let begun = Instant::now();
        assert!(first.stalled().await);
        drop(first);
        assert!(!second.stalled().await);
        drop(second);
        assert!(!third.stalled().await);
        drop(third);
        assert_eq!(begun.elapsed(), HANDLED_WITHIN);
        // Those that come again are looked at anew.
        let again = flight.begin();
        assert!(again.stalled().await);
    }

    #[test]
    fn failures_are_counted_for_each_message() {
        let flight = Flight::new();
        assert_eq!(
            [flight.failed(7), flight.failed(7), flight.failed(8)],
            [1, 2, 1]
        );
        flight.forget(7);
        assert_eq!(flight.failed(7), 1);
        for sequence in 0..FAILURES_MAX as u64 {
            flight.failed(100 + sequence);
        }
        assert!(flight.state.lock().failures.len() <= FAILURES_MAX);
    }
}
