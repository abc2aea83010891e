//! A worker: a run queue and the future that works it off.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crossbeam_deque::Worker as Queue;
use fastrand::Rng;
use tokio::time::{Instant, Sleep};

use super::core::Core;
use super::local::Local;
use crate::raw::Turn;

/// The number of turns after which the worker looks first at what came from outside.
const OUTSIDE_FIRST_EVERY: u32 = 61;

/// One in this many runs that end for want of work is measured.
const MEASURED_EVERY: u32 = 8;
/// The longest run whose like need no clock at their beginning.
const SHORT_MAX: Duration = Duration::from_micros(50);

/// A worker: runs the actors of one run queue, wherever it is polled: in a task of a runtime, on a
/// thread of its own, on a stage.
pub(super) struct Worker {
    local: Local,
    order: Order,
    timer: Option<Pin<Box<Sleep>>>,
    has_begun: bool,
    /// The waker of the timer, while it is armed.
    armed_for: Option<Waker>,
    /// The number of runs that ended for want of work.
    short_runs: u32,
    /// `true` if the last run that was measured took longer than [`SHORT_MAX`], or alarms may be
    /// due: the next begins with a look at the clock.
    is_timed: bool,
    ticks: u32,
}

/// The order in which runnable actors are run.
pub(super) enum Order {
    /// The one that waits longest comes first.
    Fifo,
    /// Any comes next, as the seed has it.
    Seeded(Seeded),
}

pub(super) struct Seeded {
    random: Rng,
    runnable: Vec<Turn>,
}

impl Seeded {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: Rng::with_seed(seed),
            runnable: Vec::new(),
        }
    }

    fn next(&mut self, local: &Local) -> Option<Turn> {
        self.runnable
            .extend(std::iter::from_fn(|| local.queue.pop()));
        self.runnable.extend(std::iter::from_fn(|| {
            local.core.take_injected(local.number)
        }));
        if self.runnable.is_empty() {
            return None;
        }
        let picked = self.random.usize(..self.runnable.len());
        Some(self.runnable.swap_remove(picked))
    }
}

enum Left {
    Work,
    Nothing,
}

impl Worker {
    pub(super) fn new(core: Arc<Core>, number: u16, queue: Queue<Turn>, order: Order) -> Self {
        Self {
            local: Local::new(core, number, queue),
            order,
            timer: None,
            has_begun: false,
            armed_for: None,
            short_runs: 0,
            is_timed: true,
            ticks: 0,
        }
    }

    /// Returns the time, if the run that begins is measured or may be a long one.
    fn begin_run(&self) -> Option<Instant> {
        let is_timed = self.is_timed
            || matches!(self.order, Order::Seeded(_))
            || self
                .short_runs
                .wrapping_add(1)
                .is_multiple_of(MEASURED_EVERY);
        is_timed.then(Instant::now)
    }

    /// Runs actors until there are none to run, or it is time to yield.
    fn work(&mut self, now: Option<Instant>) -> Left {
        let Self {
            local,
            order,
            ticks,
            ..
        } = self;
        local.pace.restart(now);
        // What came from outside in the meantime must not wait until a busy actor had many turns.
        *ticks = OUTSIDE_FIRST_EVERY - 1;
        let left = local.enter(|| {
            if let Some(now) = now {
                local.shared().timetable.go_off(now);
            }
            loop {
                *ticks = ticks.wrapping_add(1);
                let next = match order {
                    Order::Fifo => next(local, *ticks),
                    Order::Seeded(seeded) => seeded.next(local),
                };
                let Some(turn) = next else {
                    return Left::Nothing;
                };
                local.run(turn);
                local.pace.count();
                let yields = match order {
                    Order::Fifo => local.pace.is_spent(),
                    // By the clock, no seed would ever replay.
                    Order::Seeded(seeded) => seeded.random.bool(),
                };
                if yields {
                    return Left::Work;
                }
            }
        });
        local.note_running(0);
        left
    }

    /// Adds to the time that the worker ran actors. A run that ended because nothing was left is
    /// measured once in a while and stands for the others, as reading the clock costs more than a
    /// short run.
    fn account(&mut self, begin: Option<Instant>, left: &Left) {
        let ran = match left {
            Left::Work => {
                self.is_timed = true;
                self.local.pace.ran()
            }
            Left::Nothing => {
                self.short_runs = self.short_runs.wrapping_add(1);
                let Some(begin) = begin else {
                    return;
                };
                if !self.short_runs.is_multiple_of(MEASURED_EVERY) {
                    return;
                }
                let ran = begin.elapsed();
                self.is_timed = ran > SHORT_MAX;
                ran * MEASURED_EVERY
            }
        };
        let micros = u64::try_from(ran.as_micros()).unwrap_or(u64::MAX);
        self.local
            .shared()
            .stats
            .busy_micros
            .fetch_add(micros, Ordering::Relaxed);
    }

    /// Arms the timer for the next alarm. Returns `true` if it has gone off already.
    fn arm(&mut self, cx: &mut Context<'_>) -> bool {
        let timetable = &self.local.shared().timetable;
        if let Some(at) = timetable.arm() {
            match &mut self.timer {
                Some(timer) => timer.as_mut().reset(at),
                None => self.timer = Some(Box::pin(tokio::time::sleep_until(at))),
            }
            self.armed_for = Some(cx.waker().clone());
            let timer = self.timer.as_mut().expect("it was made above");
            // Registers the waker. What is due already is seen below.
            let _ = timer.as_mut().poll(cx);
        }
        let (Some(timer), Some(waker)) = (&mut self.timer, &self.armed_for) else {
            return false;
        };
        let has_gone_off = if waker.will_wake(cx.waker()) {
            timer.is_elapsed()
        } else {
            timer.as_mut().poll(cx).is_ready()
        };
        if has_gone_off {
            self.armed_for = None;
            timetable.disarm();
        }
        has_gone_off
    }
}

impl Future for Worker {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let worker = &mut *self;
        worker.local.core.get_up(worker.local.number);
        worker.local.shared().waker.register(cx.waker());
        if !worker.has_begun {
            worker.has_begun = true;
            let stats = &worker.local.shared().stats;
            stats
                .is_clock_real
                .store(is_clock_real(), Ordering::Relaxed);
        }
        loop {
            let begin = worker.begin_run();
            let left = worker.work(begin);
            worker.account(begin, &left);
            if let Left::Work = left {
                worker.local.shared().timetable.begin_waits();
                // Unlike a plain wake-up, this lets a runtime of one thread look at its sockets and
                // timers first.
                let _ = std::pin::pin!(tokio::task::yield_now()).poll(cx);
                return Poll::Pending;
            }
            if worker.local.core.is_closed() {
                return Poll::Ready(());
            }
            // First asleep, then the last look at alarms and work: a thread that adds one after
            // that look finds a worker to wake.
            worker.local.core.go_to_sleep(worker.local.number);
            let is_due = worker.arm(cx);
            if !is_due && !worker.local.core.has_work(worker.local.number) {
                return Poll::Pending;
            }
            worker.is_timed |= is_due;
            worker.local.core.get_up(worker.local.number);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let Self { local, order, .. } = self;
        let mut left: Vec<_> = std::iter::from_fn(|| local.queue.pop()).collect();
        if let Order::Seeded(seeded) = order {
            left.append(&mut seeded.runnable);
        }
        local.core.leave(local.number, left);
    }
}

/// Returns `true` if tokio's clock is not paused: a paused clock stands still, or is ahead.
fn is_clock_real() -> bool {
    let before = std::time::Instant::now();
    let shown = tokio::time::Instant::now().into_std();
    before <= shown && shown <= std::time::Instant::now()
}

fn next(local: &Local, ticks: u32) -> Option<Turn> {
    let outside = || local.core.take_injected(local.number);
    let first = if ticks.is_multiple_of(OUTSIDE_FIRST_EVERY) {
        outside()
    } else {
        None
    };
    first
        .or_else(|| local.queue.pop())
        .or_else(outside)
        .or_else(|| local.core.steal(local.number))
}
