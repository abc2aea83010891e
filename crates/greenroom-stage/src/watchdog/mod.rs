//! The watchdog: sees a handler, or another task on a loop, that holds the loop up, while it does
//! so.
//!
//! Each thread that polls inline keeps in a slot of its own the route that it polls and since when;
//! a loop that is watched ([`watch_this_loop`]) reports at each of its turns that it goes on. One
//! thread reads the slots every [`TICK`]. It starts with the first inline poll, and sleeps when
//! none was seen for [`QUIET_TICKS`] and all loops wait for the system; the next poll, or a loop
//! that goes on, wakes it.

mod held_up;
mod loops;
mod slot;
mod stalls;

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use crate::placement::LONG_RUN;
use crate::placement::route::Route;
use crate::run_delay::OwnClocks;
use held_up::HeldUp;
use slot::{Own, now_nanos, with_own};
use stalls::Watch;

pub(crate) use slot::leave_unwatched;

pub use loops::{WatchedLoop, watch_this_loop};
pub use stalls::{HANG, STALL, WARNING_PAUSE};

/// The time between two looks: a stall of 10 ms is seen after 14 ms.
const TICK: Duration = Duration::from_millis(4);

/// The number of looks without an inline poll, 200 ms, after which the watchdog sleeps until the
/// next.
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
    pub(crate) poll_time: Duration,
}

/// Polls a route on this thread, watched.
pub(crate) fn watch<R>(route: &Route, poll: impl FnOnce() -> R) -> Watched<R> {
    with_own(|own| {
        let began = now_nanos();
        let outer = own.map(|own| own.begin(route, began));
        wake();
        let clocks = OwnClocks::start_if_needed();
        let polled = poll();
        let ended = now_nanos();
        let taken = Duration::from_nanos(ended.saturating_sub(began));
        if let (Some(own), Some(outer)) = (own, outer) {
            own.end(&outer);
        }
        Watched {
            polled,
            taken,
            poll_time: poll_time(own, clocks.as_ref(), ended, taken),
        }
    })
}

#[inline]
fn poll_time(
    own: Option<&Own>,
    clocks: Option<&OwnClocks>,
    ended: u64,
    taken: Duration,
) -> Duration {
    match (own, clocks) {
        _ if taken <= LONG_RUN => taken,
        (_, Some(clocks)) => clocks.busy(taken),
        (Some(own), None) => taken.saturating_sub(own.preempted(ended)),
        (None, None) => taken,
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

#[derive(Default)]
struct Patrol {
    routes: Watch,
    loops: HeldUp,
    looks_left: u32,
}

impl Patrol {
    /// An idle loop wakes up by its own timers four times a second: after a look at one that is at
    /// work one more will do, or a watchdog with nothing to see would hardly ever sleep.
    fn look(&mut self) {
        let wanted = match (self.routes.look(), self.loops.look()) {
            (true, _) => QUIET_TICKS,
            (false, true) => 1,
            (false, false) => 0,
        };
        self.looks_left = self.looks_left.saturating_sub(1).max(wanted);
    }
}

fn patrol() {
    let mut patrol = Patrol::default();
    loop {
        patrol.look();
        if patrol.looks_left > 0 {
            thread::sleep(TICK);
            continue;
        }
        IS_ASLEEP.store(true, Ordering::SeqCst);
        // A poll that began before this store did not see it, and is seen now.
        patrol.look();
        if patrol.looks_left == 0 {
            while IS_ASLEEP.load(Ordering::SeqCst) {
                thread::park();
            }
        }
        IS_ASLEEP.store(false, Ordering::SeqCst);
    }
}
