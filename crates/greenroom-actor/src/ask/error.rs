use std::time::Duration;

use thiserror::Error;

use crate::path::ActorPath;
use crate::reason::Reason;

/// The reason for which there is no reply.
#[derive(Debug, Error)]
pub enum AskError {
    /// The deadline passed. The message may be handled all the same, or was already.
    #[error(
        "{} got no reply from {} to {message} within {}{}",
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
    #[error("{callee} handled {message} without a reply")]
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
