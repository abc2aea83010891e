//! The deadlines that one worker watches.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::time::Duration;

use tokio::time::Instant;

use super::wheel::{AlarmKey, Wheel};
use crate::cell::family::lock;
use crate::reference::ActorId;

/// Alarms, to be set from any thread; the worker lets them go off.
pub(super) struct Timetable {
    begin: Instant,
    wheel: Mutex<Wheel<Alarm>>,
    /// The millisecond for which the worker's timer is armed, or `u64::MAX`. Written under the lock.
    armed: AtomicU64,
}

/// What happens at a deadline.
pub(super) enum Alarm {
    Wake(Wait),
    Call(Box<dyn FnOnce() + Send>),
}

/// Somebody who waits for the answer of an actor.
pub(crate) struct Wait {
    pub(crate) waker: Waker,
    pub(crate) asker: Option<ActorId>,
    pub(crate) callee: ActorId,
}

impl Timetable {
    pub(super) fn new() -> Self {
        Self {
            begin: Instant::now(),
            wheel: Mutex::new(Wheel::new()),
            armed: AtomicU64::new(u64::MAX),
        }
    }

    /// Sets an alarm. True if it is before all that the worker's timer is armed for.
    pub(super) fn set(&self, at: Instant, alarm: Alarm) -> (AlarmKey, bool) {
        let deadline = self.millisecond_after(at);
        let mut wheel = lock(&self.wheel);
        let key = wheel.set(deadline, alarm);
        (key, deadline < self.armed.load(Ordering::Relaxed))
    }

    pub(super) fn cancel(&self, key: AlarmKey) -> Option<Alarm> {
        lock(&self.wheel).cancel(key)
    }

    /// Has that one woken up at the deadline, whoever it was before; false if it is past.
    pub(super) fn keep_waiting(&self, key: AlarmKey, waker: &Waker) -> bool {
        let mut wheel = lock(&self.wheel);
        let Some(Alarm::Wake(wait)) = wheel.find(key) else {
            return false;
        };
        wait.waker.clone_from(waker);
        true
    }

    /// The actor that this one waits for, if it asks one.
    pub(super) fn waits_for(&self, asker: ActorId) -> Option<ActorId> {
        let wheel = lock(&self.wheel);
        wheel.items().find_map(|alarm| match alarm {
            Alarm::Wake(wait) if wait.asker == Some(asker) => Some(wait.callee),
            _ => None,
        })
    }

    /// Lets go off what is due.
    pub(super) fn go_off(&self, now: Instant) {
        let mut due = Vec::new();
        {
            let mut wheel = lock(&self.wheel);
            if wheel.earliest().is_none() {
                return;
            }
            wheel.advance(self.millisecond(now), &mut due);
        }
        for alarm in due {
            match alarm {
                Alarm::Wake(wait) => wait.waker.wake(),
                Alarm::Call(call) => call(),
            }
        }
    }

    /// The timer of the worker went off.
    pub(super) fn disarm(&self) {
        self.armed.store(u64::MAX, Ordering::Relaxed);
    }

    /// When the worker's timer must go off, unless it is armed for that or for something earlier:
    /// alarms are mostly cancelled, and to re-arm for each would cost more than to look in vain now
    /// and then.
    pub(super) fn arm(&self) -> Option<Instant> {
        let wheel = lock(&self.wheel);
        let earliest = wheel.earliest()?;
        if earliest >= self.armed.load(Ordering::Relaxed) {
            return None;
        }
        self.armed.store(earliest, Ordering::Relaxed);
        Some(self.begin + Duration::from_millis(earliest))
    }

    fn millisecond(&self, at: Instant) -> u64 {
        whole_millis(at.saturating_duration_since(self.begin))
    }

    /// Rounded up: an alarm is never early.
    fn millisecond_after(&self, at: Instant) -> u64 {
        whole_millis(at.saturating_duration_since(self.begin)) + 1
    }
}

/// Cheaper than `as_millis`, which calculates with 128 bits.
fn whole_millis(time: Duration) -> u64 {
    let millis = time.as_secs().saturating_mul(1_000) + u64::from(time.subsec_millis());
    millis.min(u64::MAX / 2)
}
