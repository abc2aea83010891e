use std::collections::BTreeMap;
use std::sync::Arc;

use greenroom::bus::SinkSubscription;

use super::super::bell::Bell;
use super::super::frame::text_of;
use super::super::log::Log;
use crate::model::Event;

/// A topic that somebody watches.
#[derive(Debug, Default)]
pub(super) struct Topic {
    /// There once its end was looked up.
    log: Option<Arc<Log>>,
    watchers: Vec<Arc<Bell>>,
    /// Events that came before those in front of them, or before the log.
    early: BTreeMap<u64, Box<str>>,
    /// Ends with the topic.
    subscription: Option<Arc<SinkSubscription>>,
    /// It was asked for a subscription, and the answer was none.
    is_unheard: bool,
    /// Nobody watched it at the last sweep.
    is_idle: bool,
}

/// What an event that has come is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Arrival {
    /// The next one.
    New,
    /// Of those before it, some are missing.
    Early,
    /// There already, or of a log that is not open.
    Known,
}

impl Topic {
    pub(super) fn watchers(&self) -> &[Arc<Bell>] {
        &self.watchers
    }

    /// The number of the last event; `None` if that is not known yet.
    pub(super) fn last(&self) -> Option<u64> {
        self.log.as_ref().map(|log| log.last())
    }

    /// Adds a watcher, who gets the log, now or as soon as it is open. To be followed by a ring.
    pub(super) fn join(&mut self, bell: &Arc<Bell>) {
        self.is_idle = false;
        self.watchers.push(Arc::clone(bell));
        if let Some(log) = &self.log {
            bell.open(Arc::clone(log));
        }
    }

    pub(super) fn leave(&mut self, bell: &Arc<Bell>) {
        if let Some(index) = self
            .watchers
            .iter()
            .position(|watcher| Arc::ptr_eq(watcher, bell))
        {
            self.watchers.swap_remove(index);
        }
    }

    /// Forgets watchers that have left. False if nobody was there last time either.
    pub(super) fn sweep(&mut self) -> bool {
        self.watchers.retain(|bell| !bell.is_left());
        self.watchers.shrink_to(2 * self.watchers.len());
        let was_idle = std::mem::replace(&mut self.is_idle, self.watchers.is_empty());
        !(was_idle && self.is_idle)
    }

    pub(super) fn hear(&mut self, subscription: Option<Arc<SinkSubscription>>) {
        self.is_unheard = subscription.is_none();
        self.subscription = subscription;
    }

    /// Whether to ask for a subscription once more.
    pub(super) fn is_unheard(&self) -> bool {
        let has_ended = self
            .subscription
            .as_ref()
            .is_some_and(|subscription| subscription.ended().is_some());
        self.is_unheard || has_ended
    }

    /// Begins the log behind the event `last`, and hands it to the watchers. To be followed by rings.
    pub(super) fn open(&mut self, name: Arc<str>, last: u64, capacity: usize) {
        let log = Arc::new(Log::new(name, last, capacity));
        for bell in &self.watchers {
            bell.open(Arc::clone(&log));
        }
        self.log = Some(log);
        self.append_early();
    }

    /// Takes an event from the bus.
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

    /// Whether the event behind `last` is still missing, though later ones have come.
    pub(super) fn has_gap_behind(&self, last: u64) -> bool {
        self.last() == Some(last) && !self.early.is_empty()
    }

    /// Takes events that were read from the storage, of which those between may be missing that are further
    /// back than the log reaches.
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
