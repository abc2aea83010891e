//! The part that only some actors have: a name, children, watchers, senders that wait. Made when
//! first needed, so that an idle actor does not pay for it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use parking_lot::Mutex;
use slab::Slab;
use tokio::time::Instant;

use super::{AnyCell, Control, Terminated, Watcher};
use crate::actor::Actor;
use crate::id::ActorId;
use crate::notifier::Notifier;
use crate::panics::contain;
use crate::raw::Envelope;
use crate::watched::Tie;

pub(crate) struct Family<A: Actor> {
    pub(crate) name: Option<Box<str>>,
    /// The control lane, which overtakes the mailbox. As long as the number of children, of
    /// watched actors and of calls of `stop`; a repeated stop counts once.
    pub(super) controls: Mutex<VecDeque<Control<A>>>,
    pub(super) children: Mutex<Children>,
    /// Called when the actor ends.
    watchers: Mutex<Watchers>,
    /// Notified when there is room in the mailbox.
    pub(crate) room: Notifier,
    /// Notified when the actor has ended.
    pub(crate) end: Notifier,
    /// The mailbox of an actor that drops the oldest.
    pub(crate) ring: Mutex<VecDeque<Envelope<A>>>,
    failures: Mutex<VecDeque<Noted>>,
    /// `true` while it waits for its restart.
    pub(super) is_resting: AtomicBool,
}

/// A failure that counts against the intensity.
struct Noted {
    /// The moment in which it was noted, moved on by the time for which later failures lasted.
    at: Instant,
    since: Instant,
}

/// The failures of an actor within the intensity's time.
pub(crate) struct Recent {
    pub(crate) failures: usize,
    /// The moment in which the first of them began.
    pub(crate) since: Instant,
}

/// The number of a watcher, its tie, and one more for those who watch more than once.
pub(super) type WatcherKey = (ActorId, Tie, u32);

type Watchers = BTreeMap<WatcherKey, Watcher>;

/// The children of an actor.
#[derive(Default)]
pub(super) struct Children {
    pub(super) cells: Slab<Arc<dyn AnyCell>>,
    /// `true` if no more may be adopted.
    pub(super) is_closed: bool,
    /// `true` while the parent waits until there are none.
    pub(super) is_awaited: bool,
}

impl<A: Actor> Family<A> {
    pub(crate) fn new(name: Option<Box<str>>) -> Self {
        Self {
            name,
            controls: Mutex::default(),
            children: Mutex::default(),
            watchers: Mutex::default(),
            room: Notifier::new(),
            end: Notifier::new(),
            ring: Mutex::default(),
            failures: Mutex::default(),
            is_resting: AtomicBool::new(false),
        }
    }

    /// Adds a watcher, to be called at the end, once. It comes back if there are too many already;
    /// those that are no actors are always let in.
    pub(super) fn watch(
        &self,
        id: ActorId,
        tie: Tie,
        watcher: Watcher,
        watchers_max: usize,
    ) -> Result<WatcherKey, Watcher> {
        let mut watchers = self.watchers.lock();
        if watchers.len() >= watchers_max && id != ActorId::OUTSIDE {
            return Err(watcher);
        }
        let of_same = watchers
            .range((id, tie, 0)..=(id, tie, u32::MAX))
            .next_back();
        let number = of_same.map_or(0, |((.., last), _)| last + 1);
        let key = (id, tie, number);
        watchers.insert(key, watcher);
        Ok(key)
    }

    pub(super) fn unwatch(&self, id: ActorId, tie: Tie) {
        // Dropped outside of the lock.
        let mut unwatched = Vec::new();
        let mut watchers = self.watchers.lock();
        let of_tie = (id, tie, 0)..=(id, tie, u32::MAX);
        while let Some((&key, _)) = watchers.range(of_tie.clone()).next() {
            unwatched.extend(watchers.remove(&key));
        }
        drop(watchers);
    }

    pub(super) fn is_watched(&self) -> bool {
        !self.watchers.lock().is_empty()
    }

    /// Calls a watcher that came after the end, unless it was called already.
    pub(super) fn notify_one_of_end(&self, key: WatcherKey, terminated: Terminated) {
        let watcher = self.watchers.lock().remove(&key);
        if let Some(watcher) = watcher {
            contain("a watcher of an end", || watcher(terminated));
        }
    }

    pub(super) fn notify_end(&self, terminated: &Terminated) {
        let watchers = std::mem::take(&mut *self.watchers.lock());
        for watcher in watchers.into_values() {
            contain("a watcher of an end", || watcher(terminated.clone()));
        }
    }

    /// Notes a failure that began in this moment, which for one that was escalated is long ago.
    /// Returns the failures within that time, this one included.
    ///
    /// The time for which it lasted does not count. Otherwise a child whose failures take longer
    /// than `within` to be escalated would have its parent forget one before the next: each level
    /// would restart the one below for ever.
    pub(super) fn note_failure(&self, since: Instant, within: Duration, kept_max: usize) -> Recent {
        let now = Instant::now();
        let lasted = now - since;
        let mut failures = self.failures.lock();
        for earlier in &mut *failures {
            earlier.at = (earlier.at + lasted).min(now);
        }
        failures.push_back(Noted { at: now, since });
        while failures.len() > kept_max
            || failures
                .front()
                .is_some_and(|first| now - first.at > within)
        {
            failures.pop_front();
        }
        Recent {
            failures: failures.len(),
            since: failures.front().map_or(since, |first| first.since),
        }
    }
}
