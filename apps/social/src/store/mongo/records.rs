//! Documents, as they are stored. A field that no index needs, and that may be any JSON, is stored
//! as text.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{Event, Id, NewEvent, NewTask, Task, TaskKind};
use crate::store::{Result, StoreError};

/// A record of the model, and the store's notes on it.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Stored<T> {
    #[serde(rename = "_id")]
    pub(super) id: String,
    /// The intent that it was inserted with.
    pub(super) intent: String,
    /// True if it is hidden, and its files are being deleted.
    pub(super) removed: bool,
    pub(super) record: T,
}

impl<T> Stored<T> {
    pub(super) fn new(id: &impl ToString, intent: &str, record: T) -> Self {
        Self {
            id: id.to_string(),
            intent: intent.to_owned(),
            removed: false,
            record,
        }
    }
}

/// A record that expires.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Expiring<T> {
    #[serde(rename = "_id")]
    pub(super) id: String,
    /// See [`nanoseconds`].
    pub(super) expires: i64,
    pub(super) record: T,
}

/// A like, or its end. Toggles of a picture and a user are numbered from 1; the last one counts.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Toggle {
    pub(super) picture: Id,
    pub(super) user: Id,
    pub(super) number: i64,
    pub(super) on: bool,
}

/// The record of a deletion. Without it, a slow writer could add to what is gone.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Tombstone {
    /// See [`nanoseconds`].
    pub(super) at: i64,
}

/// An event that is to be written.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct PlannedEvent {
    pub(super) topic: String,
    pub(super) key: String,
    pub(super) delta: i64,
    /// See [`nanoseconds`].
    pub(super) at: i64,
    pub(super) body: String,
}

impl PlannedEvent {
    pub(super) fn new(event: &NewEvent) -> Self {
        Self {
            topic: event.topic.clone(),
            key: event.key.clone(),
            delta: event.delta,
            at: nanoseconds(Timestamp::now()),
            body: event.body.to_string(),
        }
    }
}

/// An event in its place.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct StoredEvent {
    /// See [`place`](super::log::place).
    #[serde(rename = "_id")]
    pub(super) id: String,
    pub(super) topic: String,
    pub(super) key: String,
    /// The intent that it was written for.
    pub(super) intent: String,
    pub(super) seq: i64,
    pub(super) total: i64,
    /// See [`nanoseconds`].
    pub(super) at: i64,
    pub(super) body: String,
    /// True if it is kept only for its number and its total.
    pub(super) pruned: bool,
}

impl StoredEvent {
    pub(super) fn into_event(self) -> Result<Event> {
        Ok(Event {
            topic: self.topic,
            seq: self.seq.unsigned_abs(),
            total: self.total,
            at: timestamp(self.at)?,
            body: json(&self.body)?,
        })
    }
}

/// A number that an event of the topic has or had; often of the last one.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Hint {
    /// The topic.
    #[serde(rename = "_id")]
    pub(super) id: String,
    pub(super) seq: i64,
}

/// A task of the outbox.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct StoredTask {
    /// The key.
    #[serde(rename = "_id")]
    pub(super) id: String,
    pub(super) kind: TaskKind,
    pub(super) payload: String,
    pub(super) state: State,
    pub(super) attempts: u32,
    /// See [`nanoseconds`].
    pub(super) due: i64,
    /// See [`nanoseconds`].
    pub(super) added_at: i64,
}

/// The state of a task.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    Waiting,
    Done,
    GaveUp,
}

impl State {
    /// Returns the stored name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Done => "done",
            Self::GaveUp => "gave_up",
        }
    }
}

impl StoredTask {
    pub(super) fn new(task: &NewTask) -> Self {
        Self {
            id: task.key.clone(),
            kind: task.kind,
            payload: task.payload.to_string(),
            state: State::Waiting,
            attempts: 0,
            due: nanoseconds(task.due),
            added_at: nanoseconds(Timestamp::now()),
        }
    }

    pub(super) fn into_task(self, attempts: u32) -> Result<Task> {
        Ok(Task {
            key: self.id,
            kind: self.kind,
            payload: json(&self.payload)?,
            attempts,
            added_at: timestamp(self.added_at)?,
        })
    }
}

/// Returns nanoseconds since 1970. Saturates for times beyond the year 2262.
pub(super) fn nanoseconds(timestamp: Timestamp) -> i64 {
    let wide = timestamp.as_nanosecond();
    i64::try_from(wide).unwrap_or(if wide < 0 { i64::MIN } else { i64::MAX })
}

/// The inverse of [`nanoseconds`].
pub(super) fn timestamp(nanoseconds: i64) -> Result<Timestamp> {
    Timestamp::from_nanosecond(nanoseconds.into()).map_err(StoreError::broken)
}

fn json(text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(StoreError::broken)
}
