use std::fmt::{self, Display, Formatter};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A task to be done later, and certainly: a new entry of the outbox.
#[derive(Clone, Debug, PartialEq)]
pub struct NewTask {
    /// The key, unique for ever. A task whose key is there, or was there and is done, is not added
    /// again.
    pub key: String,
    /// The kind, which decides the actor that does it.
    pub kind: TaskKind,
    /// The input of that actor.
    pub payload: Value,
    /// The earliest time to do it.
    pub due: Timestamp,
}

/// A task that was [claimed](crate::store::Store::claim_tasks).
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// See [`NewTask::key`].
    pub key: String,
    /// See [`NewTask::kind`].
    pub kind: TaskKind,
    /// See [`NewTask::payload`].
    pub payload: Value,
    /// The number of times that it was claimed, this one included: from 1.
    pub attempts: u32,
    /// The time at which it was added.
    pub added_at: Timestamp,
}

/// The kinds of tasks, each with the actor that does it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    /// Mailman sends a mail.
    Mail,
    /// Notifier sends a message to a browser, by Web Push.
    Push,
    /// Janitor deletes the files of deleted pictures, then the rest of their records; and the
    /// content of deleted users.
    Remove,
    /// Notifier posts to a user's webhook.
    Webhook,
}

impl TaskKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Mail, Self::Push, Self::Remove, Self::Webhook];

    /// Returns the name that is stored, such as `mail`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mail => "mail",
            Self::Push => "push",
            Self::Remove => "remove",
            Self::Webhook => "webhook",
        }
    }
}

impl Display for TaskKind {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The outcome of a task.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Done; it is kept, as done, until it is pruned.
    Done,
    /// Given up for this reason; it is kept, as given up, until it is pruned.
    GaveUp(String),
    /// Failed for now; it is to be tried again.
    Retry {
        /// The earliest time to do it.
        due: Timestamp,
        /// The cause of the failure.
        error: String,
    },
}
