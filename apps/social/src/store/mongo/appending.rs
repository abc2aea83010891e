//! The writing of events to their places: see [`log`](super::log).
//!
//! Writers of this process that want places in the same log at the same time are served by one of
//! them, all at once. So they do not race for a place; other replicas still do.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};

use mongodb::bson::doc;
use mongodb::error::{Error, ErrorKind};
use parking_lot::Mutex;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::oneshot::{self, Receiver, Sender};

use super::fault::{fault, is_duplicate};
use super::records::{PlannedEvent, StoredEvent};
use super::tables::Tables;
use crate::model::{Event, Head};
use crate::store::{Result, StoreError};

/// Most times that the first place behind the end may be taken by another replica.
const TRIES_MAX: u32 = 100;

/// Number of queues; more make it less likely that two topics wait for each other.
const QUEUES: usize = 64;

/// Writers that wait for places, by a hash of the topic.
#[derive(Debug)]
pub(super) struct Queues {
    hasher: RandomState,
    queues: [Queue; QUEUES],
}

#[derive(Debug, Default)]
struct Queue {
    /// Its holder serves all that wait for the same topic.
    turn: tokio::sync::Mutex<()>,
    waiting: Mutex<VecDeque<Waiting>>,
}

#[derive(Debug)]
struct Waiting {
    planned: PlannedEvent,
    intent: String,
    /// Gets the event of this key, by this writer or another.
    reply: Sender<StoredEvent>,
}

impl Default for Queues {
    fn default() -> Self {
        Self {
            hasher: RandomState::new(),
            queues: std::array::from_fn(|_| Queue::default()),
        }
    }
}

impl Queues {
    fn of(&self, topic: &str) -> &Queue {
        let hash = self.hasher.hash_one(topic) % QUEUES as u64;
        &self.queues[usize::try_from(hash).unwrap_or_default()]
    }
}

impl Queue {
    fn wait(&self, planned: &PlannedEvent, intent: &str) -> Receiver<StoredEvent> {
        let (reply, receiver) = oneshot::channel();
        let waiting = Waiting {
            planned: planned.clone(),
            intent: intent.to_owned(),
            reply,
        };
        let mut all = self.waiting.lock();
        all.push_back(waiting);
        receiver
    }

    fn take(&self, topic: &str) -> VecDeque<Waiting> {
        let mut all = self.waiting.lock();
        let (of_topic, others) = all
            .drain(..)
            .partition(|waiting| waiting.planned.topic == topic);
        *all = others;
        of_topic
    }
}

impl Tables {
    /// Appends events; returns those that were written for this intent, now or earlier.
    pub(super) async fn append_all(
        &self,
        planned: &[PlannedEvent],
        intent: &str,
    ) -> Result<Vec<Event>> {
        let mut keys = HashSet::new();
        let mut written = Vec::new();
        for event in planned {
            if keys.insert((&event.topic, &event.key)) {
                let stored = self.append(event, intent).await?;
                if stored.intent == intent {
                    written.push(stored.into_event()?);
                }
            }
        }
        Ok(written)
    }

    /// Appends an event; returns the event of this key, by this writer or another.
    async fn append(&self, planned: &PlannedEvent, intent: &str) -> Result<StoredEvent> {
        let queue = self.queues.of(&planned.topic);
        loop {
            let mut reply = queue.wait(planned, intent);
            let _turn = queue.turn.lock().await;
            match reply.try_recv() {
                Ok(event) => return Ok(event),
                // Not served by those before: this one serves all that wait.
                Err(TryRecvError::Empty) => {
                    self.serve(&planned.topic, queue.take(&planned.topic))
                        .await?;
                    return reply.try_recv().map_err(StoreError::broken);
                }
                // The writer that served it failed, or was cancelled.
                Err(TryRecvError::Closed) => {}
            }
        }
    }

    async fn serve(&self, topic: &str, mut waiting: VecDeque<Waiting>) -> Result<()> {
        let mut tries_left = TRIES_MAX;
        while !waiting.is_empty() {
            let head = self.end(topic).await?;
            let events = StoredEvent::behind(head, &waiting);
            let placed = self.insert_in_order(&events).await?;
            if let Some(last) = events[..placed].last() {
                self.leave_hint(topic, last.seq).await?;
            }
            for (waiting, event) in waiting.drain(..placed).zip(events) {
                // A writer that does not wait any more leaves its effects to the sweeper.
                let _ = waiting.reply.send(event);
            }
            if !self.serve_known(&mut waiting).await? {
                tries_left -= 1;
            }
            if tries_left == 0 {
                return Err(StoreError::unavailable(
                    "too many replicas write to the same topic",
                ));
            }
        }
        Ok(())
    }

    /// Inserts events; returns the number that got their place. The next one did not: its place is
    /// taken, or the log has its key.
    async fn insert_in_order(&self, events: &[StoredEvent]) -> Result<usize> {
        match self.events.insert_many(events).ordered(true).await {
            Ok(_) => Ok(events.len()),
            Err(error) => match first_duplicate(&error) {
                Some(index) => Ok(index),
                None => Err(fault(error)),
            },
        }
    }

    /// Serves the first one if the log has its key; `false` if its place was taken.
    async fn serve_known(&self, waiting: &mut VecDeque<Waiting>) -> Result<bool> {
        let Some(first) = waiting.front() else {
            return Ok(true);
        };
        let unique = doc! { "topic": &first.planned.topic, "key": &first.planned.key };
        let Some(event) = self.events.find_one(unique).await.map_err(fault)? else {
            return Ok(false);
        };
        self.leave_hint(&event.topic, event.seq).await?;
        if let Some(first) = waiting.pop_front() {
            let _ = first.reply.send(event);
        }
        Ok(true)
    }

    /// Raises a topic's hint. Of two concurrent calls that find none, one fails with a taken key,
    /// which does as well.
    async fn leave_hint(&self, topic: &str, seq: i64) -> Result<()> {
        let raise = doc! { "$max": { "seq": seq } };
        let left = self
            .hints
            .update_one(doc! { "_id": topic }, raise)
            .upsert(true)
            .await;
        match left {
            Err(error) if !is_duplicate(&error) => Err(fault(error)),
            _ => Ok(()),
        }
    }
}

impl StoredEvent {
    fn behind(mut head: Head, waiting: &VecDeque<Waiting>) -> Vec<Self> {
        let events = waiting.iter().map(|waiting| {
            let event = Self::next(head, &waiting.planned, &waiting.intent);
            head = event.head();
            event
        });
        events.collect()
    }
}

fn first_duplicate(error: &Error) -> Option<usize> {
    let ErrorKind::InsertMany(failure) = &*error.kind else {
        return None;
    };
    let first = failure.write_errors.as_deref()?.first()?;
    is_duplicate(error).then_some(first.index)
}
