use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;

use crate::Topic;

/// What a subscriber is told, in order.
#[derive(Clone, Debug)]
pub enum Event {
    /// Somebody published to a topic that the subscription is for.
    Message(Message),
    /// Between the event before and the event after, messages are missing.
    Gap {
        /// How many, where it is known. After Redis was away nobody knows.
        missed: Option<u64>,
        /// Why.
        cause: GapCause,
    },
}

/// Why messages are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GapCause {
    /// The subscriber was too slow and its queue was full: see [`Overflow`](crate::Overflow).
    Overflow,
    /// The subscription was not heard at the server for a while. From this event on it is heard
    /// again: what a subscriber now reads from a database misses nothing that comes after.
    Reconnected,
}

/// A payload and the topic that it was published to. Cheap to clone: all subscribers share one.
#[derive(Clone, Debug)]
pub struct Message(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    topic: Topic,
    payload: Bytes,
}

impl Event {
    /// The message, unless this is a gap.
    #[must_use]
    pub fn message(&self) -> Option<&Message> {
        match self {
            Self::Message(message) => Some(message),
            Self::Gap { .. } => None,
        }
    }
}

impl Message {
    pub(crate) fn new(topic: Topic, payload: Bytes) -> Self {
        Self(Arc::new(Parts { topic, payload }))
    }

    /// The topic that it was published to, also for a subscription to a pattern.
    #[must_use]
    pub fn topic(&self) -> &Topic {
        &self.0.topic
    }

    /// The bytes, as they were published.
    #[must_use]
    pub fn payload(&self) -> &Bytes {
        &self.0.payload
    }
}
