//! What only some actors have: a name, children, watchers, senders that wait. Made when first
//! needed, so that an idle actor does not pay for it.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use event_listener::Event;
use slab::Slab;
use tokio::time::Instant;

use super::{AnyCell, Control, Terminated, Watcher};
use crate::actor::Actor;
use crate::raw::Envelope;
use crate::reference::ActorId;

pub(crate) struct Family<A: Actor> {
    pub(crate) name: Option<Box<str>>,
    /// What overtakes the mailbox. As long as the number of children, of watched actors and of
    /// calls of `stop`; a repeated stop counts once.
    pub(super) controls: Mutex<VecDeque<Control<A>>>,
    pub(super) children: Mutex<Children>,
    /// Told when the actor ends.
    watchers: Mutex<Vec<(ActorId, Watcher)>>,
    /// For senders that wait for room.
    pub(crate) room: Event,
    /// For tasks that wait for the end.
    pub(crate) end: Event,
    /// The mailbox of an actor that drops the oldest.
    pub(crate) ring: Mutex<VecDeque<Envelope<A>>>,
    failures: Mutex<VecDeque<Instant>>,
    /// It failed, and its supervisor lets it rest before it is restarted.
    pub(super) is_resting: AtomicBool,
}

/// The children of an actor.
#[derive(Default)]
pub(super) struct Children {
    pub(super) cells: Slab<Arc<dyn AnyCell>>,
    /// No more may be adopted.
    pub(super) is_closed: bool,
    /// The parent waits until there are none.
    pub(super) is_awaited: bool,
}

impl<A: Actor> Family<A> {
    pub(crate) fn new(name: Option<Box<str>>) -> Self {
        Self {
            name,
            controls: Mutex::default(),
            children: Mutex::default(),
            watchers: Mutex::default(),
            room: Event::new(),
            end: Event::new(),
            ring: Mutex::default(),
            failures: Mutex::default(),
            is_resting: AtomicBool::new(false),
        }
    }

    /// Has the watcher told of the end, once.
    pub(super) fn watch(&self, id: ActorId, watcher: Watcher) {
        lock(&self.watchers).push((id, watcher));
    }

    pub(super) fn unwatch(&self, id: ActorId) {
        lock(&self.watchers).retain(|(watcher, _)| *watcher != id);
    }

    pub(super) fn tell_of_end(&self, terminated: &Terminated) {
        let watchers = std::mem::take(&mut *lock(&self.watchers));
        for (_, watcher) in watchers {
            watcher(terminated.clone());
        }
    }

    /// Notes a failure; how many there were within that time, this one included.
    pub(super) fn note_failure(
        &self,
        now: Instant,
        within: std::time::Duration,
        kept_max: usize,
    ) -> usize {
        let mut failures = lock(&self.failures);
        failures.push_back(now);
        while failures.len() > kept_max
            || failures.front().is_some_and(|first| now - *first > within)
        {
            failures.pop_front();
        }
        failures.len()
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
