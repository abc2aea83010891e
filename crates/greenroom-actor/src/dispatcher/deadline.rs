//! The deadline of a question.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::Duration;

use super::core::Core;
use super::local;
use super::timetable::{Alarm, Wait};
use super::waits::WaitKey;
use super::wheel::AlarmKey;
use crate::actor::Actor;
use crate::raw::ActorCell;

/// An alarm for who waits for an answer. An actor's is set with the worker that it runs on: the
/// callee's may be held by the callee. Others have none, and theirs is set with the callee's.
pub(crate) struct Deadline {
    /// None if it is the callee's.
    core: Option<Arc<Core>>,
    worker: u16,
    key: AlarmKey,
    /// There if an actor waits.
    wait: Option<WaitKey>,
}

impl Deadline {
    pub(crate) fn begin<A: Actor>(
        callee: &Arc<ActorCell<A>>,
        timeout: Duration,
        waker: &Waker,
    ) -> Self {
        let at = super::moment_after(timeout);
        let of_callee = &callee.shared.settings.dispatcher;
        let of_actor = local::with_asker(|core, worker, asker| {
            let callee = Arc::clone(callee) as _;
            let (key, wait) = core.begin_wait(worker, at, waker.clone(), Wait { asker, callee });
            Self {
                core: (!Arc::ptr_eq(core, of_callee)).then(|| Arc::clone(core)),
                worker,
                key,
                wait: Some(wait),
            }
        });
        of_actor.unwrap_or_else(|| {
            let home = callee.shared.home.load(Ordering::Relaxed);
            let (worker, key) = of_callee.set(home, at, Alarm::Wake(waker.clone()));
            Self {
                core: None,
                worker,
                key,
                wait: None,
            }
        })
    }

    /// Has that one woken up at the deadline, whoever it was before; false if it is past.
    pub(crate) fn keep_waiting(&self, of_callee: &Core, waker: &Waker) -> bool {
        let core = self.core.as_deref().unwrap_or(of_callee);
        core.keep_waiting(self.worker, self.key, waker)
    }

    pub(crate) fn end(self, of_callee: &Core) {
        let core = self.core.as_deref().unwrap_or(of_callee);
        match self.wait {
            Some(wait) => core.end_wait(self.worker, self.key, wait),
            None => core.cancel_alarm(self.worker, self.key),
        }
    }
}
