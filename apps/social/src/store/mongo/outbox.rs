//! The outbox.
//!
//! To do a task for the nth time, a replica inserts the claim of that number; of several at once
//! one succeeds. Only then the task is read again, and it is claimed if it still waits and is due.
//! If the claim's owner dies before the task says so, the claim itself holds its end; after that
//! the next number can be claimed.

use std::time::Duration;

use jiff::Timestamp;
use mongodb::bson::doc;

use super::fault::{fault, is_duplicate};
use super::records::{Expiring, State, StoredTask, nanoseconds, timestamp};
use super::tables::{Tables, delete, find, insert, page};
use crate::model::{NewTask, Outcome, Task, TaskKind};
use crate::store::{Result, StoreError};

impl Tables {
    pub(super) async fn add_tasks(&self, tasks: &[NewTask]) -> Result<()> {
        let tasks: Vec<StoredTask> = tasks.iter().map(StoredTask::new).collect();
        self.add_stored_tasks(&tasks).await
    }

    /// Adds tasks, but for those whose key is there.
    pub(super) async fn add_stored_tasks(&self, tasks: &[StoredTask]) -> Result<()> {
        if tasks.is_empty() {
            return Ok(());
        }
        match self.tasks.insert_many(tasks).ordered(false).await {
            Err(error) if !is_duplicate(&error) => Err(fault(error)),
            _ => Ok(()),
        }
    }

    /// Claims tasks. Those that are claimed when the time is over, or the server fails, are
    /// returned: nobody else gets them before their lease ends.
    pub(super) async fn claim_tasks(
        &self,
        kind: TaskKind,
        now: Timestamp,
        lease: Duration,
        limit: u32,
    ) -> Result<Vec<Task>> {
        let mut claimed = Vec::new();
        let claiming = self.claim_due(kind, now, lease, limit, &mut claimed);
        let all_claimed = self.within(claiming).await;
        match all_claimed {
            Err(error) if claimed.is_empty() => return Err(error),
            Err(error) => tracing::warn!(
                %kind,
                error = &error as &dyn std::error::Error,
                "fewer tasks were claimed than are due"
            ),
            Ok(()) => {}
        }
        Ok(claimed)
    }

    async fn claim_due(
        &self,
        kind: TaskKind,
        now: Timestamp,
        lease: Duration,
        limit: u32,
        claimed: &mut Vec<Task>,
    ) -> Result<()> {
        let until = now.checked_add(lease).map_err(StoreError::broken)?;
        let (now, until) = (nanoseconds(now), nanoseconds(until));
        let waiting =
            doc! { "kind": kind.name(), "state": State::Waiting.name(), "due": { "$lte": now } };
        let found = self.tasks.find(waiting).sort(doc! { "due": 1 });
        for task in page(found, limit).await? {
            claimed.extend(self.claim(&task, now, until).await?);
        }
        Ok(())
    }

    /// Claims a task; `None` if another replica has it.
    async fn claim(&self, task: &StoredTask, now: i64, until: i64) -> Result<Option<Task>> {
        let Some(number) = self.insert_claim(task, now, until).await? else {
            return Ok(None);
        };
        let current = find(&self.tasks, &task.id).await?;
        let is_free = |task: &StoredTask| {
            task.state == State::Waiting && task.attempts < number && task.due <= now
        };
        let Some(current) = current.filter(is_free) else {
            delete(&self.claims, &claim(&task.id, number)).await?;
            return Ok(None);
        };
        let note = doc! { "$set": { "attempts": number, "due": until } };
        let noted = self.tasks.update_one(doc! { "_id": &task.id }, note).await;
        noted.map_err(fault)?;
        current.into_task(number).map(Some)
    }

    /// Inserts a claim; returns its number.
    async fn insert_claim(&self, task: &StoredTask, now: i64, until: i64) -> Result<Option<u32>> {
        let mut number = task.attempts + 1;
        loop {
            let document = Expiring {
                id: claim(&task.id, number),
                expires: until,
                record: (),
            };
            if insert(&self.claims, &document).await? {
                return Ok(Some(number));
            }
            let other = find(&self.claims, &document.id).await?;
            if other.is_none_or(|other| other.expires > now) {
                return Ok(None);
            }
            number += 1;
        }
    }

    pub(super) async fn settle_task(&self, task: &Task, outcome: Outcome) -> Result<()> {
        let finished_at = nanoseconds(Timestamp::now());
        let change = match outcome {
            Outcome::Done => doc! { "state": State::Done.name(), "finished_at": finished_at },
            Outcome::GaveUp(error) => {
                doc! { "state": State::GaveUp.name(), "finished_at": finished_at, "error": error }
            }
            Outcome::Retry { due, error } => doc! { "due": nanoseconds(due), "error": error },
        };
        let claimed =
            doc! { "_id": &task.key, "attempts": task.attempts, "state": State::Waiting.name() };
        let settled = self
            .tasks
            .update_one(claimed, doc! { "$set": change })
            .await;
        settled.map_err(fault)?;
        delete(&self.claims, &claim(&task.key, task.attempts))
            .await
            .map(drop)
    }

    pub(super) async fn next_task(&self, kind: TaskKind) -> Result<Option<Timestamp>> {
        let waiting = doc! { "kind": kind.name(), "state": State::Waiting.name() };
        let found = self.tasks.find_one(waiting).sort(doc! { "due": 1 });
        let task = found.await.map_err(fault)?;
        task.map(|task| timestamp(task.due)).transpose()
    }
}

fn claim(key: &str, number: u32) -> String {
    format!("{key}#{number}")
}
