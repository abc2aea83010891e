//! Sees a handler that holds up a loop, while it does so.
//!
//! Each thread that polls inline says in a slot of its own which route it polls and since when.
//! One thread reads the slots every [`TICK`]. It starts with the first inline poll and sleeps when
//! none was seen for [`QUIET_TICKS`]; the next poll wakes it.

mod slot;
mod stalls;

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::placement::LONG_RUN;
use crate::placement::route::Route;
use slot::{Own, nanos_of, with_own};
use stalls::Watch;

pub use stalls::{HANG, STALL, WARNING_PAUSE};

/// The time between two looks: a stall of 10 ms is seen after 14 ms.
const TICK: Duration = Duration::from_millis(4);

/// After so many looks without an inline poll, 200 ms, the watchdog sleeps until the next.
const QUIET_TICKS: u32 = 50;

static IS_ASLEEP: AtomicBool = AtomicBool::new(false);

static THREAD: LazyLock<Option<Thread>> = LazyLock::new(|| {
    let started = thread::Builder::new().name("watchdog".into()).spawn(patrol);
    match started {
        Ok(started) => Some(started.thread().clone()),
        Err(error) => {
            tracing::error!(%error, "no thread for the watchdog: stalls go unseen");
            None
        }
    }
});

/// A poll that was watched.
pub(crate) struct Watched<R> {
    pub(crate) polled: R,
    /// The time inside it.
    pub(crate) taken: Duration,
    /// The same, less the time in which the thread had no processor, which is looked up for long
    /// polls only.
    pub(crate) busy: Duration,
}

/// Polls a route on this thread, watched.
pub(crate) fn watch<R>(route: &'static Route, poll: impl FnOnce() -> R) -> Watched<R> {
    with_own(|own| {
        let began = Instant::now();
        let outer = own.map(|own| own.begin(route, nanos_of(began)));
        wake();
        let polled = poll();
        let taken = began.elapsed();
        if let (Some(own), Some(outer)) = (own, outer) {
            own.end(&outer);
        }
        Watched {
            polled,
            taken,
            busy: busy(own, began, taken),
        }
    })
}

fn busy(own: Option<&Own>, began: Instant, taken: Duration) -> Duration {
    match own {
        Some(own) if taken > LONG_RUN => {
            taken.saturating_sub(own.preempted(nanos_of(began + taken)))
        }
        _ => taken,
    }
}

fn wake() {
    let thread = &*THREAD;
    if IS_ASLEEP.load(Ordering::SeqCst)
        && IS_ASLEEP.swap(false, Ordering::SeqCst)
        && let Some(thread) = thread
    {
        thread.unpark();
    }
}

fn patrol() {
    let (mut watch, mut quiet) = (Watch::default(), 0);
    loop {
        quiet = if watch.look() { 0 } else { quiet + 1 };
        if quiet < QUIET_TICKS {
            thread::sleep(TICK);
            continue;
        }
        IS_ASLEEP.store(true, Ordering::SeqCst);
        // A poll that began before this store did not see it, and is seen now.
        if !watch.look() {
            while IS_ASLEEP.load(Ordering::SeqCst) {
                thread::park();
            }
        }
        IS_ASLEEP.store(false, Ordering::SeqCst);
        quiet = 0;
    }
}
