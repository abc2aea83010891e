use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;

use crate::Topic;

/// An item of a subscription's stream, in order.
#[derive(Clone, Debug)]
pub enum Event {
    /// A message to a topic that the subscription matches.
    Message(Message),
    /// Messages are missing between the event before and the event after.
    Gap {
        /// The number of missing messages, if known. It is not after the server was away.
        missed: Option<u64>,
        /// The cause of the gap.
        cause: GapCause,
    },
}

/// The cause of a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GapCause {
    /// The subscriber was too slow and its queue was full: see [`Overflow`](crate::Overflow).
    Overflow,
    /// The subscription was inactive at the server for a while. From this event on it is active
    /// again: a subscriber that now reads from a database misses nothing that comes after.
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
    /// Returns the message, unless this is a gap.
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

    /// Returns the topic that it was published to, also for a subscription to a pattern.
    #[must_use]
    pub fn topic(&self) -> &Topic {
        &self.0.topic
    }

    /// Returns the bytes, as they were published.
    #[must_use]
    pub fn payload(&self) -> &Bytes {
        &self.0.payload
    }
}
