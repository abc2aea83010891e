use std::cell::{Cell, OnceCell};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use rustix::thread::{Pid, gettid};
use rustix::time::{ClockId, clock_gettime};

use crate::placement::route::Route;
use crate::run_delay;

/// The age that a thread's note of its run delay may have when a poll begins.
const DELAY_NOTE_NANOS: u64 = 10_000_000;

/// The inline poll of a thread, for the watchdog to read. Written by its thread alone.
#[derive(Debug)]
pub(super) struct Slot {
    /// The route's id and one; 0 when nothing is polled.
    route: AtomicUsize,
    /// The time at which the poll began. Stays as it was when the poll has ended.
    since: AtomicU64,
    /// The thread's run delay when last noted, not long before the poll; where the system does not
    /// report it, its CPU time when the poll began.
    run_delay: AtomicU64,
    /// The id of the route that was polled last, and one; 0 before the first.
    last_route: AtomicUsize,
    thread: i32,
}

/// A poll under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sight {
    pub(super) route: usize,
    pub(super) since: u64,
    pub(super) run_delay: u64,
    pub(super) thread: i32,
}

impl Slot {
    pub(super) fn thread(&self) -> i32 {
        self.thread
    }

    /// Returns the time at which the latest poll began, under way or not.
    pub(super) fn latest(&self) -> u64 {
        self.since.load(Ordering::SeqCst)
    }

    /// Returns the route that is polled, or was last.
    pub(super) fn last_route(&self) -> Option<usize> {
        self.last_route.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Returns the poll under way, if there is one, and it is the same one all the while it is
    /// read.
    pub(super) fn sight(&self) -> Option<Sight> {
        let read = || {
            let route = self.route.load(Ordering::SeqCst).checked_sub(1)?;
            Some((route, self.since.load(Ordering::SeqCst)))
        };
        // Read twice: the poll may end between two loads, and another begin.
        let (route, since) = read()?;
        let run_delay = self.run_delay.load(Ordering::Relaxed);
        (read()? == (route, since)).then_some(Sight {
            route,
            since,
            run_delay,
            thread: self.thread,
        })
    }
}

/// A thread's own end of its slot.
pub(super) struct Own {
    slot: Arc<CachePadded<Slot>>,
    noted: Cell<u64>,
}

/// The poll that was under way when another poll began inside it.
pub(super) struct Outer {
    route: usize,
    since: u64,
}

static SLOTS: Mutex<Vec<Weak<CachePadded<Slot>>>> = Mutex::new(Vec::new());

thread_local! {
    /// `None` for a thread that is not watched.
    static OWN: OnceCell<Option<Own>> = const { OnceCell::new() };
}

impl Own {
    fn register() -> Self {
        let own = Self {
            slot: Arc::new(CachePadded::new(Slot {
                route: AtomicUsize::new(0),
                since: AtomicU64::new(0),
                run_delay: AtomicU64::new(0),
                last_route: AtomicUsize::new(0),
                thread: Pid::as_raw(Some(gettid())),
            })),
            noted: Cell::new(0),
        };
        own.note_delay(now_nanos());
        SLOTS.lock().push(Arc::downgrade(&own.slot));
        own
    }

    pub(super) fn slot(&self) -> Arc<CachePadded<Slot>> {
        Arc::clone(&self.slot)
    }

    pub(super) fn begin(&self, route: &Route, now: u64) -> Outer {
        if !run_delay::is_reported() || now.saturating_sub(self.noted.get()) > DELAY_NOTE_NANOS {
            self.note_delay(now);
        }
        let outer = Outer {
            route: self.slot.route.load(Ordering::Relaxed),
            since: self.slot.since.load(Ordering::Relaxed),
        };
        // Before the route: a reader that sees the new route sees its time as well.
        self.slot.since.store(now, Ordering::Release);
        self.slot
            .last_route
            .store(route.id() + 1, Ordering::Relaxed);
        // Together with the watchdog's own order: either it sees the poll, or we see that it
        // sleeps.
        self.slot.route.store(route.id() + 1, Ordering::SeqCst);
        outer
    }

    pub(super) fn end(&self, outer: &Outer) {
        // No route in between, so that no reader pairs the inner route with the outer time.
        self.slot.route.store(0, Ordering::Release);
        if outer.route != 0 {
            self.slot.since.store(outer.since, Ordering::Release);
            self.slot.route.store(outer.route, Ordering::Release);
        }
    }

    /// Returns the longest time that the thread may have stood in the queue for a processor since
    /// the last note, and notes it anew.
    pub(super) fn preempted(&self, now: u64) -> Duration {
        let before = self.slot.run_delay.load(Ordering::Relaxed);
        self.note_delay(now);
        let after = self.slot.run_delay.load(Ordering::Relaxed);
        Duration::from_nanos(after.saturating_sub(before))
    }

    fn note_delay(&self, now: u64) {
        let delay = run_delay::note_of_this_thread();
        self.slot.run_delay.store(delay, Ordering::Relaxed);
        self.noted.set(now);
    }
}

/// Leaves the calling thread unwatched for good, unless it has polled a route before: it is a
/// stage's, which no loop waits for, whatever it polls.
pub(crate) fn leave_unwatched() {
    OWN.with(|own| {
        own.get_or_init(|| None);
    });
}

/// Passes this thread's slot; `None` while the thread ends, and if it is not watched.
pub(super) fn with_own<R>(use_it: impl FnOnce(Option<&Own>) -> R) -> R {
    let mut use_it = Some(use_it);
    let mut call = |own: Option<&Own>| use_it.take().map(|use_it| use_it(own));
    let used = OWN.try_with(|own| call(own.get_or_init(|| Some(Own::register())).as_ref()));
    let result = used.unwrap_or_else(|_| call(None));
    result.expect("called once, here or there")
}

/// Returns the slots of the threads that still exist.
pub(super) fn living() -> Vec<Arc<CachePadded<Slot>>> {
    let mut slots = SLOTS.lock();
    slots.retain(|slot| slot.strong_count() > 0);
    slots.iter().filter_map(Weak::upgrade).collect()
}

/// Returns the nanoseconds since the system's start; never 0. It is the clock of
/// [`Instant`](std::time::Instant), whose arithmetic with seconds costs a short poll more than the
/// reading does.
pub(super) fn now_nanos() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let part = |number: i64| u64::try_from(number).unwrap_or_default();
    (part(now.tv_sec) * 1_000_000_000 + part(now.tv_nsec)).max(1)
}
