use std::time::Duration;

use thiserror::Error;

use crate::names::NameError;
use crate::node::NodeId;

/// The reason for which there is no reply of an actor elsewhere.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// No node has such an actor. Nothing was handled.
    #[error("{}", no_such(receiver, actor, offered))]
    NoSuch {
        /// The group or entity.
        receiver: String,
        /// The kind of actor and the version of its messages.
        actor: String,
        /// The kinds that there are under this name.
        offered: Vec<String>,
    },
    /// The node has the actor, but another version of its messages. Nothing was handled.
    #[error(
        "{receiver} of {actor} has no message `{message}`, but {}",
        listed(known)
    )]
    NoSuchMessage {
        /// The group or entity.
        receiver: String,
        /// The kind of actor and the version of its messages.
        actor: String,
        /// The message.
        message: String,
        /// The messages that it has.
        known: Vec<String>,
    },
    /// The deadline passed. The message may be handled all the same, or was already.
    #[error("{receiver} did not reply to `{message}` within {}", humantime::format_duration(*after))]
    Late {
        /// The group or entity.
        receiver: String,
        /// The message.
        message: String,
        /// The deadline.
        after: Duration,
    },
    /// The node that had the message is gone, or the connection to the cluster. The message may
    /// have been handled.
    #[error("{receiver} was lost while it had `{message}`: {reason}")]
    Lost {
        /// The group or entity.
        receiver: String,
        /// The message.
        message: String,
        /// What was lost.
        reason: String,
        /// The node, if one had it.
        node: Option<NodeId>,
    },
    /// The message was rejected, and not handled.
    #[error("{receiver} rejected `{message}`: {reason}")]
    Refused {
        /// The group or entity.
        receiver: String,
        /// The message.
        message: String,
        /// The reason.
        reason: String,
        /// The time after which there may be room, if that is known.
        retry_after: Option<Duration>,
    },
    /// The handler failed, or gave no reply.
    #[error("{receiver} failed on `{message}`: {reason}")]
    Failed {
        /// The group or entity.
        receiver: String,
        /// The message.
        message: String,
        /// The reason.
        reason: String,
    },
    /// The message is larger than messages may be. Nothing was sent.
    #[error("`{message}` has {bytes} bytes when encoded; at most {bytes_max} are allowed")]
    TooLarge {
        /// The message.
        message: String,
        /// Its bytes.
        bytes: usize,
        /// The limit: the lower one of `message_bytes_max` and the server's `max_payload`.
        bytes_max: usize,
    },
    /// The message cannot be encoded, or the reply cannot be decoded.
    #[error("`{message}`: {reason}")]
    Codec {
        /// The message.
        message: String,
        /// The reason.
        reason: String,
    },
    /// A name cannot be used.
    #[error(transparent)]
    Name(#[from] NameError),
}

impl RemoteError {
    /// Returns `true` if the message was surely not handled: it may be sent again.
    #[must_use]
    pub fn is_unhandled(&self) -> bool {
        match self {
            Self::NoSuch { .. }
            | Self::NoSuchMessage { .. }
            | Self::Refused { .. }
            | Self::TooLarge { .. }
            | Self::Name(_) => true,
            Self::Late { .. } | Self::Lost { .. } | Self::Failed { .. } | Self::Codec { .. } => {
                false
            }
        }
    }

    /// Returns the kind of error in one word, as metrics have it.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::NoSuch { .. } => "no_such",
            Self::NoSuchMessage { .. } => "no_such_message",
            Self::Late { .. } => "late",
            Self::Lost { .. } => "lost",
            Self::Refused { .. } => "refused",
            Self::Failed { .. } => "failed",
            Self::TooLarge { .. } => "too_large",
            Self::Codec { .. } => "codec",
            Self::Name(_) => "name",
        }
    }
}

fn no_such(receiver: &str, actor: &str, offered: &[String]) -> String {
    if offered.is_empty() {
        format!("no node has {receiver} of {actor}")
    } else {
        format!(
            "no node has {receiver} of {actor}, but of {}",
            listed(offered)
        )
    }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}
