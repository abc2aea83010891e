//! Messages that an actor sends itself later.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::context::Context;
use crate::dispatcher::{AlarmKey, Core};
use crate::panics::contain;
use crate::raw::{Deliver, Job};
use crate::reason::Reason;
use crate::receive::Receive;
use crate::reference::{ActorRef, WeakActorRef};
use crate::reply::ReplyTo;

/// The shortest interval of a repeated timer.
const INTERVAL_MIN: Duration = Duration::from_millis(1);
/// The longest interval of a repeated timer, a year.
const INTERVAL_MAX: Duration = Duration::from_hours(365 * 24);

/// A timer of an actor. Dropping this handle does not cancel it.
#[derive(Clone)]
pub struct Timer(Arc<State>);

struct State {
    dispatcher: Arc<Core>,
    home: u16,
    alarm: Mutex<Alarm>,
    is_cancelled: AtomicBool,
    /// `true` if a message of this timer is in the mailbox.
    is_waiting: AtomicBool,
    skipped: AtomicU64,
}

/// The alarm that is set. Nothing of a user's is called or dropped under its lock: that code may
/// come back to the same timer.
#[derive(Default)]
struct Alarm {
    /// The number of times that it was set, or went off for the last time: of two threads that set
    /// it at once, the later counts.
    times: u64,
    set: Option<(u16, AlarmKey)>,
}

impl Timer {
    fn new(dispatcher: Arc<Core>, home: u16) -> Self {
        Self(Arc::new(State {
            dispatcher,
            home,
            alarm: Mutex::default(),
            is_cancelled: AtomicBool::new(false),
            is_waiting: AtomicBool::new(false),
            skipped: AtomicU64::new(0),
        }))
    }

    /// Cancels the timer. A message of it that is in the mailbox already is not handled any more.
    /// Without effect on one that has ended.
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::Release);
        // Not within the `if let`, which would keep the lock.
        let alarm = self.0.alarm.lock().set.take();
        if let Some((worker, key)) = alarm {
            self.0.dispatcher.cancel_alarm(worker, key);
        }
    }

    /// Returns `true` if it will send no more messages.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.0.is_cancelled.load(Ordering::Acquire) || self.0.alarm.lock().set.is_none()
    }

    /// Returns the number of messages that it did not send because the last still waited in the
    /// mailbox.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.0.skipped.load(Ordering::Relaxed)
    }

    /// Sets the alarm. The lock is not held meanwhile: if no worker is left, the call is dropped.
    fn set(&self, at: Instant, call: impl FnOnce() + Send + 'static) {
        if self.0.is_cancelled.load(Ordering::Acquire) {
            return;
        }
        let times = self.0.count_alarm();
        let (worker, key) = self.0.dispatcher.call_at(self.0.home, at, Box::new(call));
        let is_cancelled = {
            let mut alarm = self.0.alarm.lock();
            let is_cancelled = self.0.is_cancelled.load(Ordering::Acquire);
            // It may have gone off by now.
            if !is_cancelled && alarm.times == times {
                alarm.set = Some((worker, key));
            }
            is_cancelled
        };
        if is_cancelled {
            self.0.dispatcher.cancel_alarm(worker, key);
        }
    }

    /// Notes that it goes off for the last time.
    fn end(&self) {
        self.0.count_alarm();
        self.0.alarm.lock().set = None;
    }
}

impl State {
    fn count_alarm(&self) -> u64 {
        let mut alarm = self.alarm.lock();
        alarm.times += 1;
        alarm.times
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer")
            .field("is_done", &self.is_done())
            .finish_non_exhaustive()
    }
}

/// The timers of one actor.
#[derive(Default)]
pub(crate) struct Timers(Vec<Timer>);

impl Timers {
    /// Adds a timer. The error is a timer that has ended: the actor may have no more.
    pub(crate) fn at<A, M, K>(
        &mut self,
        actor: &ActorRef<A>,
        moment: Instant,
        message: M,
    ) -> Result<Timer, Timer>
    where
        A: Receive<M, K>,
        M: Send + 'static,
        K: 'static,
    {
        let timer = self.add(actor)?;
        let (receiver, of) = (actor.downgrade(), timer.clone());
        timer.set(moment, move || {
            of.end();
            if let Some(actor) = receiver.upgrade() {
                actor.0.post_or_dead_letter(Tick::<M, K> {
                    message,
                    of,
                    kind: PhantomData,
                });
            }
        });
        Ok(timer)
    }

    pub(crate) fn every<A, M, K>(
        &mut self,
        actor: &ActorRef<A>,
        interval: Duration,
        message: M,
    ) -> Result<Timer, Timer>
    where
        A: Receive<M, K>,
        M: Clone + Send + 'static,
        K: 'static,
    {
        let timer = self.add(actor)?;
        let repeated = Repeated {
            actor: actor.downgrade(),
            interval: interval.clamp(INTERVAL_MIN, INTERVAL_MAX),
            message,
            of: timer.clone(),
            kind: PhantomData::<fn(K)>,
        };
        repeated.set_after(Instant::now());
        Ok(timer)
    }

    pub(crate) fn cancel_all(&mut self) {
        for timer in self.0.drain(..) {
            timer.cancel();
        }
    }

    fn add<A: crate::Actor>(&mut self, actor: &ActorRef<A>) -> Result<Timer, Timer> {
        let settings = &actor.0.shared.settings;
        let timers_max = settings.limits.timers as usize;
        // Only where the list would grow: so each timer is looked at a constant number of times.
        if self.0.len() == self.0.capacity() || self.0.len() >= timers_max {
            self.0.retain(|timer| !timer.is_done());
        }
        let is_full = self.0.len() >= timers_max;
        let dispatcher = Arc::clone(&settings.dispatcher);
        let timer = Timer::new(dispatcher, actor.0.shared.home.load(Ordering::Relaxed));
        if is_full {
            timer.cancel();
            return Err(timer);
        }
        self.0.push(timer.clone());
        Ok(timer)
    }
}

/// A timer that goes off repeatedly.
struct Repeated<A: crate::Actor, M, K> {
    actor: WeakActorRef<A>,
    interval: Duration,
    message: M,
    of: Timer,
    kind: PhantomData<fn(K)>,
}

impl<A, M, K> Repeated<A, M, K>
where
    A: Receive<M, K>,
    M: Clone + Send + 'static,
    K: 'static,
{
    /// Sets the alarm for the first multiple of the interval after `last` that is not past.
    fn set_after(self, last: Instant) {
        let next = next_tick(last, self.interval, Instant::now());
        let timer = self.of.clone();
        timer.set(next, move || self.go_off(next));
    }

    fn go_off(self, now: Instant) {
        let Some(actor) = self.actor.upgrade() else {
            return;
        };
        if self.of.0.is_waiting.swap(true, Ordering::AcqRel) {
            self.of.0.skipped.fetch_add(1, Ordering::Relaxed);
        } else {
            self.send_to(&actor);
        }
        self.set_after(now);
    }

    /// Sends the message. One that panics as it is cloned is left out: the next may do better.
    fn send_to(&self, actor: &ActorRef<A>) {
        let mut cloned = None;
        contain("a timer's message, when it was cloned", || {
            cloned = Some(self.message.clone());
        });
        let Some(message) = cloned else {
            return self.of.0.is_waiting.store(false, Ordering::Release);
        };
        actor.0.post_or_dead_letter(Tick::<M, K> {
            message,
            of: self.of.clone(),
            kind: PhantomData,
        });
    }
}

fn next_tick(last: Instant, interval: Duration, now: Instant) -> Instant {
    let next = last + interval;
    if next >= now {
        return next;
    }
    let missed = (now - next).as_nanos().div_ceil(interval.as_nanos());
    next + interval.saturating_mul(u32::try_from(missed).unwrap_or(u32::MAX))
}

/// A message of a timer.
struct Tick<M, K> {
    message: M,
    of: Timer,
    kind: PhantomData<fn(K)>,
}

impl<A, M, K> Deliver<A> for Tick<M, K>
where
    A: Receive<M, K>,
    M: Send + 'static,
    K: 'static,
{
    fn deliver<'a>(self, actor: &'a mut A, context: &'a mut Context<A>) -> Option<Job<'a>> {
        self.of.0.is_waiting.store(false, Ordering::Release);
        if self.of.0.is_cancelled.load(Ordering::Acquire) {
            return None;
        }
        actor.receive(self.message, ReplyTo::nobody(), context)
    }

    fn refuse(self, _: Reason) -> Box<dyn Any + Send> {
        self.of.0.is_waiting.store(false, Ordering::Release);
        Box::new(self.message)
    }

    fn message() -> &'static str {
        std::any::type_name::<M>()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::dispatcher::unstarted;

    struct CancelsWhenDropped(Timer);

    impl Drop for CancelsWhenDropped {
        fn drop(&mut self) {
            self.0.cancel();
        }
    }

    #[test]
    fn a_message_that_no_worker_is_left_for_may_cancel_its_timer_when_it_is_dropped() {
        let (core, workers) = unstarted(1);
        drop(workers);
        let (sender, is_done) = mpsc::channel();
        std::thread::spawn(move || {
            let timer = Timer::new(core, 0);
            let message = CancelsWhenDropped(timer.clone());
            timer.set(Instant::now(), move || drop(message));
            sender.send(timer.is_done()).expect("the test waits");
        });
        assert_eq!(is_done.recv_timeout(Duration::from_secs(30)), Ok(true));
    }
}
