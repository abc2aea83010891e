//! The deadlines that one worker watches.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::time::Duration;

use tokio::time::Instant;

use super::wheel::{AlarmKey, Wheel};
use crate::cell::family::lock;
use crate::reference::ActorId;

/// An alarm that is this much overdue was missed by the worker.
const LATE_MILLIS: u64 = 5;

/// Alarms, to be set from any thread; the worker lets them go off.
pub(super) struct Timetable {
    begin: Instant,
    wheel: Mutex<Wheel<Alarm>>,
    /// Who waits still for whom although the deadline is past: nobody has told them yet.
    overdue: Mutex<Vec<(AlarmKey, ActorId, ActorId)>>,
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
            overdue: Mutex::default(),
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
        let cancelled = lock(&self.wheel).cancel(key);
        if cancelled.is_none() {
            lock(&self.overdue).retain(|(other, ..)| *other != key);
        }
        cancelled
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
        let waits = wheel.items().find_map(|alarm| match alarm {
            Alarm::Wake(wait) if wait.asker == Some(asker) => Some(wait.callee),
            _ => None,
        });
        drop(wheel);
        waits.or_else(|| {
            let overdue = lock(&self.overdue);
            let mut of_asker = overdue.iter().filter(|(_, other, _)| *other == asker);
            of_asker.next().map(|(_, _, callee)| *callee)
        })
    }

    /// Lets go off what is due, if the worker should have done so a while ago: an actor holds it, or
    /// something else holds the thread that it is on.
    pub(super) fn go_off_late(&self, now: Instant) {
        let late = self.millisecond(now).saturating_sub(LATE_MILLIS);
        let earliest = lock(&self.wheel).earliest();
        if earliest.is_some_and(|earliest| earliest <= late) {
            self.go_off(now);
        }
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
            let is_asked = |(key, alarm): &(AlarmKey, Alarm)| match alarm {
                Alarm::Wake(wait) => wait.asker.map(|asker| (*key, asker, wait.callee)),
                Alarm::Call(_) => None,
            };
            // Before the wheel is let go: who cancels finds the alarm in the one or the other.
            lock(&self.overdue).extend(due.iter().filter_map(is_asked));
        }
        for (_, alarm) in due {
            match alarm {
                Alarm::Wake(wait) => wait.waker.wake(),
                Alarm::Call(call) => {
                    // What is called clones a user's message.
                    if catch_unwind(AssertUnwindSafe(call)).is_err() {
                        tracing::error!(target: "greenroom::actor", "the message of a timer panicked when it was cloned");
                    }
                }
            }
        }
    }

    /// Nobody looks any more: who waits is woken now, and finds the deadline past; calls are dropped.
    pub(super) fn close(&self) {
        let alarms = lock(&self.wheel).take_all();
        for alarm in alarms {
            if let Alarm::Wake(wait) = alarm {
                wait.waker.wake();
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
        let since = at.saturating_duration_since(self.begin);
        millis(since, since.subsec_millis())
    }

    /// Rounded up: an alarm is never early.
    fn millisecond_after(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.begin);
        millis(since, since.subsec_nanos().div_ceil(1_000_000))
    }
}

/// Cheaper than `as_millis`, which calculates with 128 bits.
fn millis(time: Duration, below_second: u32) -> u64 {
    let millis = time.as_secs().saturating_mul(1_000);
    millis.saturating_add(below_second.into()).min(u64::MAX / 2)
}
