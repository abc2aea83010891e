use std::fmt;

use thiserror::Error;

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
