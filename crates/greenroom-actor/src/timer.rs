//! Messages that an actor sends itself later.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use crate::cell::family::lock;
use crate::context::Context;
use crate::dead_letter::Reason;
use crate::dispatcher::{AlarmKey, Core};
use crate::raw::{Deliver, Job};
use crate::receive::Receive;
use crate::reference::{ActorRef, WeakActorRef};
use crate::reply::ReplyTo;

/// The shortest interval of a timer that goes off again and again.
const INTERVAL_MIN: Duration = Duration::from_millis(1);
/// The longest, a year.
const INTERVAL_MAX: Duration = Duration::from_hours(365 * 24);

/// A timer of an actor. Dropping this does not cancel it.
#[derive(Clone)]
pub struct Timer(Arc<State>);

struct State {
    dispatcher: Arc<Core>,
    worker: u16,
    alarm: Mutex<Option<AlarmKey>>,
    is_cancelled: AtomicBool,
    /// A message of this timer is in the mailbox.
    is_waiting: AtomicBool,
    skipped: AtomicU64,
}

impl Timer {
    /// Cancels it. A message of it that is in the mailbox already is not handled any more. Without
    /// effect on one that has ended.
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::Release);
        // Not within the `if let`, which would keep the lock: with the alarm goes its message, whose
        // destructor may cancel the same timer.
        let alarm = lock(&self.0.alarm).take();
        if let Some(key) = alarm {
            self.0.dispatcher.cancel_alarm(self.0.worker, key);
        }
    }

    /// Whether it will send no more.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.0.is_cancelled.load(Ordering::Acquire) || lock(&self.0.alarm).is_none()
    }

    /// How often it sent nothing because its last message still waited in the mailbox.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.0.skipped.load(Ordering::Relaxed)
    }

    fn set(&self, at: Instant, call: impl FnOnce() + Send + 'static) {
        let mut alarm = lock(&self.0.alarm);
        if !self.0.is_cancelled.load(Ordering::Acquire) {
            *alarm = Some(self.0.dispatcher.call_at(self.0.worker, at, Box::new(call)));
        }
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
    pub(crate) fn at<A, M, K>(&mut self, actor: &ActorRef<A>, moment: Instant, message: M) -> Timer
    where
        A: Receive<M, K>,
        M: Send + 'static,
        K: 'static,
    {
        let timer = self.add(actor);
        let (receiver, of) = (actor.downgrade(), timer.clone());
        timer.set(moment, move || {
            lock(&of.0.alarm).take();
            if let Some(actor) = receiver.upgrade() {
                actor.0.post_or_bury(Tick::<M, K> {
                    message,
                    of,
                    kind: PhantomData,
                });
            }
        });
        timer
    }

    pub(crate) fn every<A, M, K>(
        &mut self,
        actor: &ActorRef<A>,
        interval: Duration,
        message: M,
    ) -> Timer
    where
        A: Receive<M, K>,
        M: Clone + Send + 'static,
        K: 'static,
    {
        let timer = self.add(actor);
        let repeated = Repeated {
            actor: actor.downgrade(),
            interval: interval.clamp(INTERVAL_MIN, INTERVAL_MAX),
            message,
            of: timer.clone(),
            kind: PhantomData::<fn(K)>,
        };
        repeated.set_after(Instant::now());
        timer
    }

    pub(crate) fn cancel_all(&mut self) {
        for timer in self.0.drain(..) {
            timer.cancel();
        }
    }

    fn add<A: crate::Actor>(&mut self, actor: &ActorRef<A>) -> Timer {
        let dispatcher = Arc::clone(&actor.0.shared.settings.dispatcher);
        let timer = Timer(Arc::new(State {
            dispatcher,
            worker: actor.0.shared.home.load(Ordering::Relaxed),
            alarm: Mutex::new(None),
            is_cancelled: AtomicBool::new(false),
            is_waiting: AtomicBool::new(false),
            skipped: AtomicU64::new(0),
        }));
        if self.0.len() == self.0.capacity() {
            self.0.retain(|timer| !timer.is_done());
        }
        self.0.push(timer.clone());
        timer
    }
}

/// A timer that goes off again and again.
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
    /// Sets it for the first multiple of the interval after `last` that is not past.
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
            let message = self.message.clone();
            actor.0.post_or_bury(Tick::<M, K> {
                message,
                of: self.of.clone(),
                kind: PhantomData,
            });
        }
        self.set_after(now);
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
