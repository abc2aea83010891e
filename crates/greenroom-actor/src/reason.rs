use std::fmt;

use serde::Serialize;

/// The reason for which a message was not handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Its handler panicked.
    Failed,
    /// The actor was restarted or stopped while the handler waited.
    Aborted,
    /// The mailbox was full, and it was the newest ([`Overflow::DropNewest`](crate::Overflow)).
    DroppedNewest,
    /// The mailbox was full, and it was the oldest ([`Overflow::DropOldest`](crate::Overflow)).
    DroppedOldest,
    /// The mailbox was full, and the message had no sender to return it to, as with
    /// [`pipe`](crate::Context::pipe) and timers.
    MailboxFull,
    /// The actor had ended, or ended before its turn came.
    Ended,
}

/// The number of reasons.
pub(crate) const REASONS: usize = 6;

impl Reason {
    /// All reasons.
    pub const ALL: [Self; REASONS] = [
        Self::Failed,
        Self::Aborted,
        Self::DroppedNewest,
        Self::DroppedOldest,
        Self::MailboxFull,
        Self::Ended,
    ];

    /// Returns the reason as the status and the metrics name it.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Aborted => "aborted",
            Self::DroppedNewest => "dropped_newest",
            Self::DroppedOldest => "dropped_oldest",
            Self::MailboxFull => "mailbox_full",
            Self::Ended => "ended",
        }
    }

    fn explanation(self) -> &'static str {
        match self {
            Self::Failed => "its handler failed",
            Self::Aborted => "the actor was restarted or killed while the handler waited",
            Self::DroppedNewest => "the mailbox was full and drops the newest",
            Self::DroppedOldest => "the mailbox was full and drops the oldest",
            Self::MailboxFull => "the mailbox was full",
            Self::Ended => "the actor has ended",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.explanation())
    }
}

/// The reason of a dead letter, and the text of the panic if it was one.
#[derive(Clone, Copy)]
pub(crate) struct Why<'a> {
    pub(crate) reason: Reason,
    pub(crate) panic: Option<&'a str>,
}

impl From<Reason> for Why<'_> {
    fn from(reason: Reason) -> Self {
        Self {
            reason,
            panic: None,
        }
    }
}
