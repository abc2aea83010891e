use crate::TopicError;

/// The longest payload that can be published, in bytes: 1 MiB. Larger data belongs in a store, and
/// its address on the bus.
pub const PAYLOAD_BYTES_MAX: usize = 1_048_576;

/// The progress of a message that was published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// In-process: it is in the queues of all subscribers. Redis and NATS: the server has it; with
    /// [replay](crate::NatsSettings::replay) it is in the stream. The number of receivers is
    /// unknown: the one that Redis gives counts one node of a cluster only, and NATS gives none.
    Published,
    /// It waits in this process: the server is away
    /// ([`WhileAway::Queue`](crate::WhileAway::Queue)), or it was published with
    /// [`try_publish`](crate::Bus::try_publish). It is lost if this process ends before the server
    /// takes it.
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
    #[error("the payload for `{topic}` has {bytes} bytes, and may have {bytes_max}")]
    TooLong {
        /// The topic of the message.
        topic: crate::Topic,
        /// The length of the payload.
        bytes: usize,
        /// The most that it may have: [`PAYLOAD_BYTES_MAX`], or less if a server of NATS takes no
        /// more (`max_payload`).
        bytes_max: usize,
    },
    /// The value cannot be serialized as JSON. The publisher's fault.
    #[cfg(feature = "json")]
    #[error(transparent)]
    Json(#[from] crate::JsonError),
    /// The server is away, and [`WhileAway::Fail`](crate::WhileAway::Fail) is chosen, or it went
    /// away before this message was sent. Try again later. With a
    /// [replay](crate::NatsSettings::replay) also, whatever is chosen: no stream took this message,
    /// but one took a later message of this process, which it would come after now.
    #[error("the server of the bus is away")]
    Away,
    /// The queue for the server is full. Try again later.
    #[error("the queue to the server of the bus is full: {messages} messages, {bytes} bytes")]
    QueueFull {
        /// The most messages that may wait.
        messages: usize,
        /// The most bytes of payload that may wait.
        bytes: usize,
    },
    /// The connection broke after this message was sent and before the server's reply. It may have
    /// been published. To publish it again may double it.
    #[error("the connection to the server broke; the message may or may not have been published")]
    Unknown,
    /// The server refused: for want of rights, or because another node of a cluster is responsible.
    /// Trying again does not help.
    #[error("the server refused the message: {reason}")]
    Refused {
        /// The server's own words.
        reason: String,
    },
}

impl PublishError {
    /// Returns `true` if the same message may be taken later, and cannot be doubled by that.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Away | Self::QueueFull { .. })
    }
}
