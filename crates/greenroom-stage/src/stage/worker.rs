use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::thread::{Pid, gettid};

use super::error::Panicked;
use super::lanes::Spent;
use super::metered::{Polled, last_poll};
use super::shared::{Shared, Work};
use crate::fair::Turn;

/// A thread of a stage: takes work and runs it until it is not needed any more.
pub(crate) fn work(stage: &Arc<Shared>) {
    let worker = stage.hand_off.enter(Pid::as_raw(Some(gettid())));
    let idle_timeout = stage.settings.idle_timeout;
    let mut spent = None;
    while let Some(turn) = stage.hand_off.next(worker, spent.take(), idle_timeout) {
        spent = Some(take(stage, turn));
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
    Spent {
        used,
        run: run.map(|run| run.wanted),
        ..unused
    }
}
