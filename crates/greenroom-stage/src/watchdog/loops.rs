use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crossbeam_utils::CachePadded;
use crossbeam_utils::atomic::AtomicCell;
use metrics::{Counter, counter};
use parking_lot::Mutex;
use rustix::thread::{Pid, gettid};
use tokio::runtime::{Handle, RuntimeMetrics};

use super::slot::{Slot, with_own};
use crate::placement::lease;

/// The only worker of a current-thread runtime.
const WORKER: usize = 0;

static LOOPS: Mutex<Vec<Weak<LoopSlot>>> = Mutex::new(Vec::new());

/// A loop that the watchdog watches, until it [ends](Self::ends) or this is dropped. The server
/// that runs the loop reports its state here, on its thread; each report is one store.
///
/// A turn that neither waits for the system nor polls a placed route must come to an end: a loop
/// that goes on with the same for over 10 ms ([`STALL`](crate::STALL)) is warned of, at most once a
/// second, and over 1 s ([`HANG`](crate::HANG)) is an error.
pub struct WatchedLoop {
    slot: Arc<LoopSlot>,
}

/// Has the watchdog watch the loop on the calling thread, under this name in logs and metrics.
///
/// The loop's runtime reports its state by its hooks:
///
/// ```
/// use std::sync::{Arc, OnceLock};
///
/// use greenroom_stage::{WatchedLoop, watch_this_loop};
///
/// let watched: Arc<OnceLock<WatchedLoop>> = Arc::default();
/// let (parks, unparks) = (Arc::clone(&watched), Arc::clone(&watched));
/// let runtime = tokio::runtime::Builder::new_current_thread()
///     .on_thread_park(move || parks.get().into_iter().for_each(WatchedLoop::parks))
///     .on_thread_unpark(move || unparks.get().into_iter().for_each(WatchedLoop::unparks))
///     .build()?;
/// runtime.block_on(async {
///     watched.get_or_init(|| watch_this_loop("loop"));
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
///
/// Outside of a tokio runtime.
#[must_use]
pub fn watch_this_loop(name: &str) -> WatchedLoop {
    lease::count_on_this_thread();
    let slot = Arc::new(LoopSlot {
        name: name.to_owned(),
        thread: Pid::as_raw(Some(gettid())),
        beat: CachePadded::default(),
        spawned_at: AtomicCell::new(None),
        stalls: AtomicU64::new(0),
        stall_meter: counter!("greenroom_loop_stalls_total", "loop" => name.to_owned()),
        runtime: Handle::current().metrics(),
        polls: with_own(|own| own.map(super::Own::slot)),
    });
    let mut loops = LOOPS.lock();
    loops.retain(|known| known.strong_count() > 0);
    loops.push(Arc::downgrade(&slot));
    drop(loops);
    let watched = WatchedLoop { slot };
    watched.unparks();
    watched
}

impl WatchedLoop {
    /// Reports that the loop has nothing to do, and waits for the system.
    pub fn parks(&self) {
        self.slot.report(Doing::Parked, Ordering::Relaxed);
    }

    /// Reports that the loop goes on.
    pub fn unparks(&self) {
        // Together with the watchdog's own order: either it sees the loop run, or we see that it
        // sleeps.
        self.slot.report(Doing::Other, Ordering::SeqCst);
        super::wake();
    }

    /// Reports that the loop polls a connection.
    pub fn connection_begins(&self) {
        self.slot.report(Doing::Connection, Ordering::Relaxed);
    }

    /// Reports that the poll of a connection has ended.
    pub fn connection_ends(&self) {
        self.slot.report(Doing::Other, Ordering::Relaxed);
    }

    /// Reports that the loop polls a task that was spawned at this place: for runtimes that know
    /// it, which takes tokio's `on_before_task_poll` and `--cfg tokio_unstable`.
    pub fn task_begins(&self, spawned_at: &'static Location<'static>) {
        self.slot.spawned_at.store(Some(spawned_at));
        self.slot.report(Doing::Other, Ordering::Relaxed);
    }

    /// Reports that the loop has ended: it is watched no longer, and what it counted stays.
    pub fn ends(&self) {
        let own = Arc::downgrade(&self.slot);
        LOOPS.lock().retain(|known| !known.ptr_eq(&own));
    }

    /// Returns how often the loop made no progress for over 10 ms.
    #[must_use]
    pub fn stalls(&self) -> u64 {
        self.slot.stalls.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for WatchedLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.slot.name;
        f.debug_struct("WatchedLoop")
            .field("name", name)
            .finish_non_exhaustive()
    }
}

/// The state of a loop, as far as it reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    Parked,
    Connection,
    Other,
}

impl Doing {
    const BITS: u32 = 2;

    fn of(beat: u64) -> Self {
        match beat & ((1 << Self::BITS) - 1) {
            0 => Self::Parked,
            1 => Self::Connection,
            _ => Self::Other,
        }
    }
}

/// The reports of a loop, for the watchdog to read.
pub(super) struct LoopSlot {
    name: String,
    thread: i32,
    /// Its state, and above that a count of its reports.
    beat: CachePadded<AtomicU64>,
    spawned_at: AtomicCell<Option<&'static Location<'static>>>,
    stalls: AtomicU64,
    stall_meter: Counter,
    runtime: RuntimeMetrics,
    polls: Option<Arc<CachePadded<Slot>>>,
}

/// The progress of a loop. Two equal ones are of a loop that has made none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    beat: u64,
    /// Changes with each turn of the runtime, which is after 61 polls of tasks or sooner. So a
    /// loop that polls only tasks that are not reported is seen to go on.
    busy: Duration,
    route_polled: u64,
}

impl LoopSlot {
    fn report(&self, doing: Doing, order: Ordering) {
        // Only the loop's thread writes it.
        let before = self.beat.load(Ordering::Relaxed) >> Doing::BITS;
        let beat = before.wrapping_add(1) << Doing::BITS | doing as u64;
        self.beat.store(beat, order);
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn thread(&self) -> i32 {
        self.thread
    }

    pub(super) fn is_parked(&self) -> bool {
        Doing::of(self.beat.load(Ordering::SeqCst)) == Doing::Parked
    }

    /// Returns its progress; `None` while it waits for the system, or polls a placed route, which
    /// is watched as such.
    pub(super) fn progress(&self) -> Option<Progress> {
        let polls = self.polls.as_ref();
        if self.is_parked() || polls.is_some_and(|polls| polls.sight().is_some()) {
            return None;
        }
        Some(Progress {
            beat: self.beat.load(Ordering::Relaxed),
            busy: self.runtime.worker_total_busy_duration(WORKER),
            route_polled: polls.map_or(0, |polls| polls.latest()),
        })
    }

    /// Describes what it does, as far as known, for the log.
    pub(super) fn task(&self) -> String {
        if let Some(spawned_at) = self.spawned_at.load() {
            return format!("spawned at {spawned_at}");
        }
        match Doing::of(self.beat.load(Ordering::Relaxed)) {
            Doing::Connection => "a connection, outside of any placed route".to_owned(),
            Doing::Other | Doing::Parked => "spawned on this loop".to_owned(),
        }
    }

    /// Returns the route that the loop's thread has polled last.
    pub(super) fn last_route(&self) -> Option<usize> {
        self.polls.as_ref().and_then(|polls| polls.last_route())
    }

    pub(super) fn count_stall(&self) {
        self.stalls.fetch_add(1, Ordering::Relaxed);
        self.stall_meter.increment(1);
    }
}

/// Returns the loops that are watched.
pub(super) fn watched() -> Vec<Arc<LoopSlot>> {
    LOOPS.lock().iter().filter_map(Weak::upgrade).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within_a_loop(test: impl FnOnce(&WatchedLoop)) {
        let runtime = { tokio::runtime::Builder::new_current_thread() }.build();
        let runtime = runtime.expect("the system gives one");
        let entered = runtime.enter();
        test(&watch_this_loop("test"));
        drop(entered);
    }

    #[test]
    fn whatever_a_loop_says_is_progress_and_saying_nothing_is_none() {
        within_a_loop(|watched| {
            let slot = &watched.slot;
            let begun = slot.progress();
            assert!(begun.is_some());
            assert_eq!(slot.progress(), begun);
            watched.connection_begins();
            let polled = slot.progress();
            assert!(polled.is_some() && polled != begun);
            assert_eq!(slot.task(), "a connection, outside of any placed route");
            watched.connection_ends();
            assert!(slot.progress() != polled && slot.progress() != begun);
            assert_eq!(slot.task(), "spawned on this loop");
            watched.task_begins(Location::caller());
            assert!(slot.task().contains(file!()), "{}", slot.task());
        });
    }

    #[test]
    fn a_loop_that_waits_for_the_system_is_not_held_up() {
        within_a_loop(|watched| {
            watched.parks();
            assert_eq!(watched.slot.progress(), None);
            assert!(watched.slot.is_parked());
            watched.unparks();
            assert!(watched.slot.progress().is_some());
        });
    }

    #[test]
    fn a_loop_that_has_ended_is_not_watched_any_more() {
        within_a_loop(|watched| {
            let is_watched = || {
                super::watched()
                    .iter()
                    .any(|slot| Arc::ptr_eq(slot, &watched.slot))
            };
            assert!(is_watched());
            watched.ends();
            assert!(!is_watched());
        });
    }

    #[test]
    fn a_loop_that_goes_on_with_the_same_is_held_up() {
        within_a_loop(|watched| {
            watched.connection_begins();
            while watched.stalls() == 0 {
                std::thread::yield_now();
            }
        });
    }
}
