use crate::TopicError;

/// The longest payload that is taken for publishing, in bytes: 1 MiB. What is larger belongs in a
/// store, and its address on the bus.
pub const PAYLOAD_BYTES_MAX: usize = 1_048_576;

/// How far a message has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// In-process: it is in the queues of all subscribers. Redis: the server has it. How many will
    /// receive it nobody knows: the number that Redis gives counts one node of a cluster only.
    Published,
    /// It waits in this process: Redis is away ([`WhileAway::Queue`](crate::WhileAway::Queue)), or
    /// it was published with [`try_publish`](crate::Bus::try_publish). It is lost if this process
    /// ends before the server takes it.
    Queued,
}

/// A message that was not published.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The topic is none. The publisher's fault.
    #[error(transparent)]
    Topic(#[from] TopicError),
    /// The payload is too long. The publisher's fault.
    #[error("the payload for `{topic}` has {bytes} bytes, and may have {PAYLOAD_BYTES_MAX}")]
    TooLong {
        /// Where it was to go.
        topic: crate::Topic,
        /// What it has.
        bytes: usize,
    },
    /// The value has no JSON. The publisher's fault.
    #[cfg(feature = "json")]
    #[error(transparent)]
    Json(#[from] crate::JsonError),
    /// Redis is away, and [`WhileAway::Fail`](crate::WhileAway::Fail) is chosen, or it went away
    /// before this message was sent. Try again later.
    #[error("Redis is away")]
    Away,
    /// So many messages or bytes wait for Redis as may. Try again later.
    #[error("the queue to Redis is full: {messages} messages, {bytes} bytes")]
    QueueFull {
        /// How many messages may wait.
        messages: usize,
        /// How many bytes of payload may wait.
        bytes: usize,
    },
    /// The connection broke after this message was sent and before the server's answer. It may
    /// have been published. To publish it again may double it.
    #[error("the connection to Redis broke; the message may or may not have been published")]
    Unknown,
    /// The server refused: for want of rights, or because another node of a cluster is
    /// responsible. To try again does not help.
    #[error("Redis refused the message: {reason}")]
    Refused {
        /// The server's own words.
        reason: String,
    },
}

impl PublishError {
    /// Whether the same message may be taken later, and cannot be doubled by that.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Away | Self::QueueFull { .. })
    }
}
