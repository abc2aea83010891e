//! A circuit breaker for a third party that fails.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use failsafe::backoff::{self, Exponential};
use failsafe::failure_policy::{ConsecutiveFailures, consecutive_failures};
use failsafe::{Config, Instrument, StateMachine};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Consecutive failures that open it.
const FAILURES_MAX: u32 = 5;
/// Time it stays open the first time; each further time is twice as long…
const REST_FIRST: Duration = Duration::from_secs(1);
/// … up to this.
const REST_LONGEST: Duration = Duration::from_secs(30);

/// A circuit breaker. Closed: all pass. Open: none. Half open: one may try.
#[derive(Clone)]
pub(super) struct Breaker {
    machine: StateMachine<ConsecutiveFailures<Rests>, Watcher>,
    state: Arc<State>,
}

/// State that the library's state machine does not expose.
struct State {
    is_closed: AtomicBool,
    rest_millis: AtomicU64,
    probe: Arc<Semaphore>,
}

/// Permission for one try. While the breaker is half open it is the only one.
pub(super) struct Pass {
    _probe: Option<OwnedSemaphorePermit>,
}

impl Breaker {
    pub(super) fn new() -> Self {
        let state = Arc::new(State {
            is_closed: AtomicBool::new(true),
            rest_millis: AtomicU64::new(0),
            probe: Arc::new(Semaphore::new(1)),
        });
        let rests = Rests {
            rests: backoff::exponential(REST_FIRST, REST_LONGEST),
            state: Arc::clone(&state),
        };
        let machine = Config::new()
            .failure_policy(consecutive_failures(FAILURES_MAX, rests))
            .instrument(Watcher(Arc::clone(&state)))
            .build();
        Self { machine, state }
    }

    /// Returns a pass, or for how long the breaker is open at most.
    pub(super) fn pass(&self) -> Result<Pass, Duration> {
        let rest = || Duration::from_millis(self.state.rest_millis.load(Ordering::Relaxed));
        if !self.machine.is_call_permitted() {
            return Err(rest());
        }
        let probe = if self.is_closed() {
            None
        } else {
            let probe = Arc::clone(&self.state.probe).try_acquire_owned();
            Some(probe.map_err(|_| rest())?)
        };
        Ok(Pass { _probe: probe })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state.is_closed.load(Ordering::Relaxed)
    }

    pub(super) fn record(&self, is_success: bool) {
        if is_success {
            self.machine.on_success();
        } else {
            self.machine.on_error();
        }
    }
}

impl Debug for Breaker {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        Debug::fmt(&self.machine, formatter)
    }
}

/// The times for which it stays open.
#[derive(Clone)]
struct Rests {
    rests: Exponential,
    state: Arc<State>,
}

impl Iterator for Rests {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let rest = self.rests.next()?;
        let millis = u64::try_from(rest.as_millis()).unwrap_or(u64::MAX);
        self.state.rest_millis.store(millis, Ordering::Relaxed);
        Some(rest)
    }
}

struct Watcher(Arc<State>);

impl Instrument for Watcher {
    fn on_call_rejected(&self) {}

    fn on_open(&self) {
        self.0.is_closed.store(false, Ordering::Relaxed);
        let rest_millis = self.0.rest_millis.load(Ordering::Relaxed);
        tracing::warn!(
            rest_millis,
            "the third party fails; the circuit breaker is open"
        );
    }

    fn on_half_open(&self) {}

    fn on_closed(&self) {
        self.0.is_closed.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fail(breaker: &Breaker, times: u32) {
        for _ in 0..times {
            breaker.record(false);
        }
    }

    /// Waits in real time: the library reads the system's clock.
    fn pass_after_rest(breaker: &Breaker) -> Pass {
        loop {
            if let Ok(pass) = breaker.pass() {
                return pass;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn it_takes_five_failures_in_a_row() {
        let breaker = Breaker::new();
        fail(&breaker, 4);
        breaker.record(true);
        fail(&breaker, 4);
        assert!(breaker.pass().is_ok());
        fail(&breaker, 1);
        assert_eq!(breaker.pass().err(), Some(REST_FIRST));
        assert!(!breaker.is_closed());
    }

    #[test]
    fn half_open_it_lets_one_pass_at_a_time() {
        let breaker = Breaker::new();
        fail(&breaker, 5);
        let probe = pass_after_rest(&breaker);
        assert!(breaker.pass().is_err());
        drop(probe); // the caller left without a result
        let probe = breaker.pass().expect("another one may try");
        breaker.record(false);
        drop(probe);
        assert_eq!(breaker.pass().err(), Some(REST_FIRST * 2));
        let _probe = pass_after_rest(&breaker);
        breaker.record(true);
        assert!(breaker.is_closed());
        assert!(breaker.pass().is_ok() && breaker.pass().is_ok());
    }
}
