use std::fmt;
use std::time::Duration;

use thiserror::Error;

use crate::dead_letter::Reason;
use crate::path::ActorPath;

/// A message that [`tell`](crate::ActorRef::tell) could not deliver. It comes back.
#[derive(Error)]
pub enum TellError<M> {
    /// The mailbox is full. Try again later, or wait with [`send`](crate::ActorRef::send).
    #[error("the mailbox is full")]
    Full(M),
    /// The actor has ended, or is about to.
    #[error("the actor has ended")]
    Closed(M),
}

impl<M> TellError<M> {
    /// The message.
    #[must_use]
    pub fn into_message(self) -> M {
        match self {
            Self::Full(message) | Self::Closed(message) => message,
        }
    }

    /// Returns `true` if the mailbox was full, `false` if the actor had ended.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full(_))
    }
}

impl<M> fmt::Debug for TellError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_full() {
            "Full(..)"
        } else {
            "Closed(..)"
        })
    }
}

/// A message that [`send`](crate::ActorRef::send) could not deliver. It comes back.
#[derive(Error)]
pub enum SendError<M> {
    /// The mailbox is full, and refuses instead of letting senders wait
    /// ([`Overflow::Refuse`](crate::Overflow)).
    #[error("the mailbox is full")]
    Full(M),
    /// The actor has ended, or is about to.
    #[error("the actor has ended")]
    Closed(M),
}

impl<M> SendError<M> {
    /// The message.
    #[must_use]
    pub fn into_message(self) -> M {
        match self {
            Self::Full(message) | Self::Closed(message) => message,
        }
    }
}

impl<M> fmt::Debug for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_full = matches!(self, Self::Full(_));
        f.write_str(if is_full { "Full(..)" } else { "Closed(..)" })
    }
}

/// The reason for which there is no reply.
#[derive(Debug, Error)]
pub enum AskError {
    /// The deadline passed. The message may be handled all the same, or was already.
    #[error(
        "{} got no answer from {} to {message} within {}{}",
        asker_name(asker.as_ref()),
        callee,
        humantime::format_duration(*after),
        waiting_for(callee, callee_waits_for.as_ref())
    )]
    TimedOut {
        /// The path of the actor that asked, if an actor did.
        asker: Option<ActorPath>,
        /// The path of the actor that was asked.
        callee: ActorPath,
        /// The path of the actor that the asked one waits for itself, if it does. If that is the
        /// asker, the two are in a deadlock.
        callee_waits_for: Option<ActorPath>,
        /// The type of the message.
        message: &'static str,
        /// The deadline.
        after: Duration,
    },
    /// The mailbox is full, and refuses instead of letting senders wait.
    #[error("the mailbox of {callee} is full")]
    Full {
        /// The path of the actor that was asked.
        callee: ActorPath,
    },
    /// The actor has ended, or ended before it replied.
    #[error("{callee} has ended")]
    Closed {
        /// The path of the actor that was asked.
        callee: ActorPath,
    },
    /// The message was not handled, or not to its end.
    #[error("{callee} did not handle {message}: {reason}")]
    Unhandled {
        /// The path of the actor that was asked.
        callee: ActorPath,
        /// The type of the message.
        message: &'static str,
        /// The reason.
        reason: Reason,
    },
    /// The handler dropped the reply.
    #[error("{callee} handled {message} without an answer")]
    NoReply {
        /// The path of the actor that was asked.
        callee: ActorPath,
        /// The type of the message.
        message: &'static str,
    },
}

impl AskError {
    /// Returns `true` if the deadline passed.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::TimedOut { .. })
    }
}

fn asker_name(asker: Option<&ActorPath>) -> String {
    asker.map_or_else(|| "the asker".to_owned(), ActorPath::to_string)
}

fn waiting_for(callee: &ActorPath, waits_for: Option<&ActorPath>) -> String {
    waits_for.map_or_else(String::new, |other| {
        format!("; {callee} itself waits for {other}")
    })
}
