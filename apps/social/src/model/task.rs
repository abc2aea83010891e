use std::fmt::{self, Display, Formatter};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is to be done later, and certainly: an entry of the outbox.
#[derive(Clone, Debug, PartialEq)]
pub struct NewTask {
    /// Unique for ever. A task of a key that is there, or was there and is done, is not added again.
    pub key: String,
    /// Who does it.
    pub kind: TaskKind,
    /// What its doer needs to know.
    pub payload: Value,
    /// Not before.
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
    /// How often it was claimed, this time included: from 1.
    pub attempts: u32,
    /// When it was added.
    pub added_at: Timestamp,
}

/// Kinds of tasks, by who does them.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    /// Mailman sends a mail.
    Mail,
    /// Notifier sends a message to a browser, by Web Push.
    Push,
    /// Janitor deletes the files of pictures that are gone, and then what is left of their records; and what users have made who
    /// are gone.
    Remove,
    /// Notifier posts to a user's webhook.
    Webhook,
}

impl TaskKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Mail, Self::Push, Self::Remove, Self::Webhook];

    /// As it is stored: `mail`.
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

/// What a task came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It is done; it is kept, as done, until it is pruned.
    Done,
    /// It cannot be done, for this reason; it is kept, as given up, until it is pruned.
    GaveUp(String),
    /// It is to be tried again.
    Retry {
        /// Not before.
        due: Timestamp,
        /// Why it failed.
        error: String,
    },
}
