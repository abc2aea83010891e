//! The deadlines that one worker watches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::alarm::{Alarm, Clock};
use super::waits::{Note, WaitKey, Waits};
use super::wheel::{AlarmKey, Wheel};
use crate::cell::AnyCell;
use crate::id::ActorId;
use crate::panics::contain;

/// The delay after which an overdue alarm counts as missed by the worker, in milliseconds.
const LATE_MILLIS: u64 = 5;

/// Alarms, to be set from any thread; the worker lets them go off. Nothing of a user's is called,
/// cloned or dropped under the lock: it may set or cancel an alarm in turn.
pub(super) struct Timetable {
    clock: Clock,
    alarms: Mutex<Alarms>,
    /// The millisecond before which no alarm has to go off; 0 if waits are only noted, `u64::MAX`
    /// if there is nothing. Written under the lock, so that the worker need not take it to see
    /// that there is nothing to do.
    next: AtomicU64,
    /// The millisecond for which the worker's timer is armed, or `u64::MAX`. Written under the
    /// lock.
    armed: AtomicU64,
}

struct Alarms {
    wheel: Wheel<Alarm>,
    /// The actors that wait for replies. An entry stays beyond the deadline, until the asker has
    /// the error: of two that ask each other, the first to get it finds the other.
    waits: Waits,
}

impl Alarms {
    /// Returns the waker that is woken at a deadline, if that is not past.
    fn waker(&mut self, key: &WatchKey) -> Option<&mut Waker> {
        match key {
            WatchKey::Wait(key) => self.waits.waker(key, &mut self.wheel),
            WatchKey::Alarm(key) => match self.wheel.find(*key) {
                Some(Alarm::Wake(waker)) => Some(waker),
                _ => None,
            },
        }
    }

    /// Returns the alarms, those of the latest waits included, which begin now.
    #[inline]
    fn settled(&mut self, clock: Clock, now: impl FnOnce() -> Instant) -> &mut Wheel<Alarm> {
        if self.waits.has_noted() {
            self.waits.settle(&mut self.wheel, clock, now());
        }
        &mut self.wheel
    }

    /// Returns the millisecond before which no alarm has to go off.
    #[inline]
    fn next(&self) -> u64 {
        if self.waits.has_noted() {
            return 0;
        }
        self.wheel.earliest().unwrap_or(u64::MAX)
    }
}

/// The key of a wait for a reply: of an actor, or of another task.
pub(super) enum WatchKey {
    Wait(WaitKey),
    Alarm(AlarmKey),
}

impl Timetable {
    pub(super) fn new() -> Self {
        Self {
            clock: Clock::new(),
            alarms: Mutex::new(Alarms {
                wheel: Wheel::new(),
                waits: Waits::new(),
            }),
            next: AtomicU64::new(u64::MAX),
            armed: AtomicU64::new(u64::MAX),
        }
    }

    /// Sets an alarm. Returns `true` if it is before all that the worker's timer is armed for.
    pub(super) fn set(&self, at: Instant, alarm: Alarm) -> (AlarmKey, bool) {
        let deadline = self.clock.millisecond_after(at);
        let mut alarms = self.alarms.lock();
        let key = alarms.wheel.set(deadline, alarm);
        self.publish(&alarms);
        (key, deadline < self.armed.load(Ordering::Relaxed))
    }

    pub(super) fn cancel(&self, key: AlarmKey) -> Option<Alarm> {
        self.alarms.lock().wheel.cancel(key)
    }

    /// Notes that an actor waits for another from now on, on this timetable's own worker: it looks
    /// at its alarms before it rests.
    pub(super) fn begin_wait(
        &self,
        asker: ActorId,
        callee: Arc<dyn AnyCell>,
        timeout: Duration,
        waker: Waker,
    ) -> WaitKey {
        let mut alarms = self.alarms.lock();
        let key = alarms.waits.note(asker, callee, Note { timeout, waker });
        self.publish(&alarms);
        key
    }

    pub(super) fn end_wait(&self, key: WaitKey) {
        let mut alarms = self.alarms.lock();
        let Alarms { wheel, waits } = &mut *alarms;
        let removed = waits.remove(key, wheel);
        self.publish(&alarms);
        drop(alarms);
        drop(removed);
    }

    /// Makes this waker the one that is woken at the deadline. Returns `false` if that is past.
    pub(super) fn keep_waiting(&self, key: &WatchKey, waker: &Waker) -> bool {
        match self.alarms.lock().waker(key) {
            Some(known) if known.will_wake(waker) => return true,
            Some(_) => {}
            None => return false,
        }
        let mut other = waker.clone();
        match self.alarms.lock().waker(key) {
            Some(known) => std::mem::swap(known, &mut other),
            None => return false,
        }
        true
    }

    /// Returns the actor that this one waits for, if it asks one.
    pub(super) fn waits_for(&self, asker: ActorId) -> Option<Arc<dyn AnyCell>> {
        let mut alarms = self.alarms.lock();
        alarms.settled(self.clock, Instant::now);
        alarms.waits.of(asker)
    }

    /// Lets due alarms go off, if the worker should have done so a while ago: an actor holds it, or
    /// something else holds the thread that it is on, or it is gone.
    pub(super) fn go_off_late(&self, now: Instant) {
        let late = self.clock.millisecond(now).saturating_sub(LATE_MILLIS);
        let earliest = self.alarms.lock().settled(self.clock, || now).earliest();
        if earliest.is_some_and(|earliest| earliest <= late) {
            self.go_off(now);
        }
    }

    /// Lets due alarms go off.
    pub(super) fn go_off(&self, now: Instant) {
        let millisecond = self.clock.millisecond(now);
        if millisecond < self.next.load(Ordering::Relaxed) {
            return;
        }
        let mut due = Vec::new();
        {
            let mut alarms = self.alarms.lock();
            let wheel = alarms.settled(self.clock, || now);
            if wheel.earliest().is_some() {
                wheel.advance(millisecond, &mut due);
            }
            self.publish(&alarms);
        }
        for alarm in due {
            match alarm {
                Alarm::Wake(waker) => contain("a waker, at a deadline", || waker.wake()),
                Alarm::Call(call) => contain("the message of a timer, when it was cloned", call),
            }
        }
    }

    /// Ends all alarms, as no worker is left to look: waiting tasks are woken now, and find the
    /// deadline past; calls are dropped.
    pub(super) fn close(&self) {
        let alarms = self.take_all();
        for alarm in alarms {
            match alarm {
                Alarm::Wake(waker) => contain("a waker, at the end of a worker", || waker.wake()),
                Alarm::Call(call) => contain("the message of a timer, when it was dropped", || {
                    drop(call);
                }),
            }
        }
    }

    fn take_all(&self) -> Vec<Alarm> {
        let mut alarms = self.alarms.lock();
        let all = alarms.settled(self.clock, Instant::now).take_all();
        self.publish(&alarms);
        all
    }

    /// Notes that the timer of the worker went off.
    // Under the lock: whoever sets an alarm after that sees it, and what was set before the worker
    // sees when it arms the timer.
    pub(super) fn disarm(&self) {
        let _alarms = self.alarms.lock();
        self.armed.store(u64::MAX, Ordering::Relaxed);
    }

    /// Lets the latest waits begin, at the end of a run of the worker that goes on at once.
    pub(super) fn begin_waits(&self) {
        if self.next.load(Ordering::Relaxed) == 0 {
            let mut alarms = self.alarms.lock();
            alarms.settled(self.clock, Instant::now);
            self.publish(&alarms);
        }
    }

    /// Returns the moment for which the worker's timer must be armed, unless it is armed for that
    /// or for something earlier: alarms are mostly cancelled, and to re-arm for each would cost
    /// more than to look in vain now and then.
    pub(super) fn arm(&self) -> Option<Instant> {
        let armed = self.armed.load(Ordering::Relaxed);
        if self.next.load(Ordering::Relaxed) >= armed {
            return None;
        }
        let mut alarms = self.alarms.lock();
        let earliest = alarms.settled(self.clock, Instant::now).earliest();
        self.publish(&alarms);
        let earliest = earliest.filter(|earliest| *earliest < armed)?;
        self.armed.store(earliest, Ordering::Relaxed);
        Some(self.clock.begin + Duration::from_millis(earliest))
    }

    /// Tells the worker what its alarms are, at the end of a change to them.
    fn publish(&self, alarms: &Alarms) {
        self.next.store(alarms.next(), Ordering::Relaxed);
    }
}
