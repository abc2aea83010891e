//! The deadline of an `ask`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::Duration;

use super::alarm::Alarm;
use super::core::Core;
use super::local;
use super::timetable::WatchKey;
use crate::actor::Actor;
use crate::raw::ActorCell;

/// An alarm for a task that waits for a reply. An actor's is set with the worker that it runs on:
/// the callee's may be held by the callee. Other tasks have no worker, and theirs is set with the
/// callee's.
pub(crate) struct Deadline {
    /// `None` if it is the callee's.
    core: Option<Arc<Core>>,
    worker: u16,
    key: WatchKey,
}

impl Deadline {
    pub(crate) fn begin<A: Actor>(
        callee: &Arc<ActorCell<A>>,
        timeout: Duration,
        waker: &Waker,
    ) -> Self {
        let of_callee = &callee.shared.settings.dispatcher;
        let of_actor = local::with_asker(|core, worker, asker| {
            let callee = Arc::clone(callee) as _;
            let timetable = core.timetable(worker);
            let key = timetable.begin_wait(asker, callee, timeout, waker.clone());
            Self {
                core: (!Arc::ptr_eq(core, of_callee)).then(|| Arc::clone(core)),
                worker,
                key: WatchKey::Wait(key),
            }
        });
        of_actor.unwrap_or_else(|| {
            let (home, at) = (&callee.shared.home, super::moment_after(timeout));
            let alarm = Alarm::Wake(waker.clone());
            let (worker, key) = of_callee.set(home.load(Ordering::Relaxed), at, alarm);
            Self {
                core: None,
                worker,
                key: WatchKey::Alarm(key),
            }
        })
    }

    /// Makes this waker the one that is woken at the deadline. Returns `false` if that is past.
    pub(crate) fn keep_waiting(&self, of_callee: &Core, waker: &Waker) -> bool {
        let core = self.core.as_deref().unwrap_or(of_callee);
        core.timetable(self.worker).keep_waiting(&self.key, waker)
    }

    pub(crate) fn end(self, of_callee: &Core) {
        let core = self.core.as_deref().unwrap_or(of_callee);
        match self.key {
            WatchKey::Wait(key) => core.timetable(self.worker).end_wait(key),
            WatchKey::Alarm(key) => core.cancel_alarm(self.worker, key),
        }
    }
}
