use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::thread::{Pid, gettid};

use super::error::Panicked;
use super::lanes::{Length, Spent};
use super::metered::{Polled, last_poll};
use super::shared::{Shared, Work};
use crate::fair::Turn;
use crate::raw::set_time_slice;

/// The longest slice that there is. What wakes up with a shorter one goes first if it has had no more
/// than its part, so the longer the slice, the sooner others run.
const LONG_SLICE: Duration = Duration::from_millis(100);

/// A thread of a stage: takes work and runs it until it is not needed any more.
pub(crate) fn work(stage: &Arc<Shared>) {
    let worker = stage.hand_off.enter(Pid::as_raw(Some(gettid())));
    let idle_timeout = stage.settings.idle_timeout;
    let (mut spent, mut slice) = (None, None);
    while let Some(turn) = stage.hand_off.next(worker, spent.take(), idle_timeout) {
        let length = turn.work.metadata().band().length();
        if slice.replace(length) != Some(length) {
            ask_for_slices(length);
        }
        spent = Some(take(stage, turn));
    }
}

/// Has the system interrupt a long run for whatever wakes up: a loop, a short run, another program.
/// With slices of the usual length, which the system lets a thread use up, each of them would wait for
/// up to 3 ms. Where it knows no such slices nothing changes.
fn ask_for_slices(length: Length) {
    let slice = match length {
        Length::Short => Duration::ZERO,
        Length::Long => LONG_SLICE,
    };
    if let Err(error) = set_time_slice(slice) {
        tracing::debug!(%error, "a stage's thread keeps its time slices");
    }
}

/// What the work has used.
fn take(stage: &Shared, turn: Turn<Work>) -> Spent {
    let Turn {
        flow,
        expected,
        work,
    } = turn;
    let unused = Spent {
        flow,
        expected,
        charged: Instant::now(),
        used: Duration::ZERO,
        run: None,
    };
    if !stage.is_worth_running(&work) {
        return unused;
    }
    let ticket = Arc::clone(work.metadata());
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| work.run())) {
        stage.log_panic(&Panicked::of(payload));
    }
    let Some(Polled { poll, run }) = last_poll() else {
        return unused;
    };
    let used = poll.used(&stage.settings.bounds);
    stage.note_used(&ticket.submission, used, Instant::now());
    // Of what is more of a response that has begun nothing is to be learnt of a whole run.
    let run = run.filter(|_| !ticket.terms.expected.is_zero());
    Spent {
        used,
        run: run.map(|run| run.wanted),
        ..unused
    }
}
