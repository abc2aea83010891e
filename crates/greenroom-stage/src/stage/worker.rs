use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::thread::{Pid, gettid};

use super::error::Panicked;
use super::lanes::{Spent, Taken};
use super::metered::{Polled, last_poll};
use super::shared::{Shared, Work};
use crate::raw::set_time_slice;
use crate::watchdog::leave_unwatched;

/// The longest slice that Linux grants. A thread that wakes up with a shorter one goes first if it
/// has had no more than its share, so the longer the slice, the sooner others run.
const LONG_SLICE: Duration = Duration::from_millis(100);

/// Runs a thread of a stage: takes work and runs it until the thread is not needed any more.
pub(crate) fn work(stage: &Arc<Shared>) {
    leave_unwatched();
    let worker = stage.scheduler.enter(Pid::as_raw(Some(gettid())));
    let idle_timeout = stage.settings.limits.idle_timeout;
    let (mut spent, mut has_long_slices) = (None, false);
    while let Some(taken) = stage.scheduler.next(worker, spent.take(), idle_timeout) {
        let computes = taken.turn.work.metadata().terms.computes;
        // A system call for each change, not for each run.
        if computes != has_long_slices {
            has_long_slices = computes;
            ask_for_slices(computes);
        }
        spent = Some(take(stage, taken));
    }
}

/// Has the system interrupt work that computes for any thread that wakes up: a loop, a short run,
/// one that has slept, another program. With slices of the usual length, which the system lets a
/// thread use up, each of them would wait for up to 3 ms. Work that does not compute keeps the
/// usual ones, or it would have to wait for those that do. Where the system knows no such slices
/// nothing changes.
fn ask_for_slices(computes: bool) {
    let slice = if computes { LONG_SLICE } else { Duration::ZERO };
    if let Err(error) = set_time_slice(slice) {
        tracing::debug!(%error, "a stage's thread keeps its time slices");
    }
}

/// Runs the work whose turn it is. Returns the time it has used.
fn take(stage: &Shared, taken: Taken<Work>) -> Spent {
    let unused = Spent::nothing(&taken, Instant::now());
    let work = taken.turn.work;
    if !stage.is_worth_running(&work) {
        return unused;
    }
    let ticket = Arc::clone(work.metadata());
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| work.run())) {
        stage.log_panic(&Panicked::of(payload));
    }
    ticket.note_polled();
    let Some(Polled { poll, run }) = last_poll() else {
        return unused;
    };
    let used = poll.used(&stage.settings.bounds);
    stage.note_used(&ticket.submission, used, Instant::now());
    let run = run.filter(|_| ticket.is_whole_run());
    Spent {
        used,
        run: run.map(|run| ticket.ended(run.wanted)),
        ..unused
    }
}
