use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rustix::thread::{Pid, gettid};

use super::error::Panicked;
use super::shared::{Shared, Work};

/// The life of a stage's thread.
pub(crate) fn work(stage: &Arc<Shared>) {
    let worker = stage.hand_off.enter(Pid::as_raw(Some(gettid())));
    let idle_timeout = stage.settings.idle_timeout;
    while let Some(work) = stage.hand_off.next(worker, idle_timeout) {
        if stage.is_worth_running(&work) {
            run(stage, work);
        }
    }
}

/// The work catches its own panics; what is caught here is the destructor of a result that nobody
/// wanted any more.
fn run(stage: &Shared, work: Work) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| work.run())) {
        stage.log_panic(&Panicked::of(payload));
    }
}
