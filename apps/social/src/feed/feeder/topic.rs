use std::collections::BTreeMap;
use std::sync::Arc;

use greenroom::bus::SinkSubscription;

use super::super::frame::text_of;
use super::super::log::Log;
use super::super::waker::Waker;
use crate::model::Event;

/// A topic that clients watch.
#[derive(Debug, Default)]
pub(super) struct Topic {
    /// The log, present once its end has been looked up.
    log: Option<Arc<Log>>,
    watchers: Vec<Arc<Waker>>,
    /// Events that arrived before their predecessors, or before the log was opened.
    early: BTreeMap<u64, Box<str>>,
    /// The subscription, which ends with the topic.
    subscription: Option<Arc<SinkSubscription>>,
    /// The bus has rejected the subscription.
    is_unheard: bool,
    /// The topic had no watchers at the last sweep.
    is_idle: bool,
}

/// The relation of an arrived event to the log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Arrival {
    /// The event is the next one.
    New,
    /// Events before it are missing.
    Early,
    /// The event is in the log already, or the log is not open.
    Known,
}

impl Topic {
    pub(super) fn watchers(&self) -> &[Arc<Waker>] {
        &self.watchers
    }

    /// Returns the number of the last event; `None` if that is not known yet.
    pub(super) fn last(&self) -> Option<u64> {
        self.log.as_ref().map(|log| log.last())
    }

    /// Adds a watcher, which gets the log, now or as soon as it is open. The caller must wake it
    /// then.
    pub(super) fn join(&mut self, waker: &Arc<Waker>) {
        self.is_idle = false;
        self.watchers.push(Arc::clone(waker));
        if let Some(log) = &self.log {
            waker.open(Arc::clone(log));
        }
    }

    pub(super) fn leave(&mut self, waker: &Arc<Waker>) {
        if let Some(index) = self
            .watchers
            .iter()
            .position(|watcher| Arc::ptr_eq(watcher, waker))
        {
            self.watchers.swap_remove(index);
        }
    }

    /// Forgets watchers that have left. Returns `false` if there were none last time either.
    pub(super) fn sweep(&mut self) -> bool {
        self.watchers.retain(|waker| !waker.is_left());
        self.watchers.shrink_to(2 * self.watchers.len());
        let was_idle = std::mem::replace(&mut self.is_idle, self.watchers.is_empty());
        !(was_idle && self.is_idle)
    }

    pub(super) fn hear(&mut self, subscription: Option<Arc<SinkSubscription>>) {
        self.is_unheard = subscription.is_none();
        self.subscription = subscription;
    }

    /// Returns `true` if the topic needs a new subscription.
    pub(super) fn is_unheard(&self) -> bool {
        let has_ended = self
            .subscription
            .as_ref()
            .is_some_and(|subscription| subscription.ended().is_some());
        self.is_unheard || has_ended
    }

    /// Opens the log after the event `last`, and hands it to the watchers. The caller must wake
    /// them then.
    pub(super) fn open(&mut self, name: Arc<str>, last: u64, capacity: usize) {
        let log = Arc::new(Log::new(name, last, capacity));
        for waker in &self.watchers {
            waker.open(Arc::clone(&log));
        }
        self.log = Some(log);
        self.append_early();
    }

    /// Handles an event from the bus.
    pub(super) fn arrive(&mut self, seq: u64, text: Box<str>, early_max: usize) -> Arrival {
        let last = self.last();
        if last.is_some_and(|last| seq <= last) {
            return Arrival::Known;
        }
        if let Some(log) = self.log.as_ref().filter(|log| log.last() + 1 == seq) {
            log.append(seq, text);
            self.append_early();
            return Arrival::New;
        }
        if self.early.len() < early_max {
            self.early.insert(seq, text);
        }
        if last.is_some() {
            Arrival::Early
        } else {
            Arrival::Known
        }
    }

    /// Returns `true` if the event after `last` is still missing, though later ones have arrived.
    pub(super) fn has_gap_behind(&self, last: u64) -> bool {
        self.last() == Some(last) && !self.early.is_empty()
    }

    /// Adds events that were read from the storage. Some before them may be missing, if they are
    /// older than the log reaches.
    pub(super) fn fill(&mut self, events: &[Event]) {
        let Some(log) = &self.log else { return };
        for event in events {
            if event.seq > log.last() + 1 {
                log.skip_to(event.seq, text_of(event).into());
            } else if event.seq > log.last() {
                log.append(event.seq, text_of(event).into());
            }
        }
        self.append_early();
    }

    fn append_early(&mut self) {
        let Some(log) = &self.log else { return };
        while let Some(entry) = self.early.first_entry()
            && *entry.key() <= log.last() + 1
        {
            let (seq, text) = entry.remove_entry();
            log.append(seq, text);
        }
    }
}
