//! Forgets what nobody needs any more, in steps that each end in time.

use std::time::Duration;

use jiff::Timestamp;
use mongodb::Collection;
use mongodb::bson::{Document, doc};
use serde::de::DeserializeOwned;

use super::fault::fault;
use super::log::place;
use super::records::{Expiring, Hint, Stored, StoredTask, Tombstone, nanoseconds};
use super::tables::{Tables, all, delete_all, page};
use crate::store::{Result, Retention, StoreError};

/// Documents of a kind that are forgotten at a time.
const STEP_MAX: u32 = 10_000;

/// No writer is so slow that it would not see a tombstone of this age.
const TOMBSTONES_FOR: Duration = Duration::from_hours(1);

impl Tables {
    pub(super) async fn prune(&self, now: Timestamp, retention: Retention) -> Result<()> {
        let expired = doc! { "expires": { "$lt": nanoseconds(now) } };
        self.within(forget(&self.sessions, expired.clone(), id_of))
            .await?;
        self.within(forget(&self.nonces, expired, id_of)).await?;
        let finished = before(now, retention.tasks_for)?;
        let old = doc! { "finished_at": { "$lt": finished } };
        self.within(forget(&self.tasks, old, |task: &StoredTask| {
            task.id.clone()
        }))
        .await?;
        self.within(forget(
            &self.claims,
            doc! { "expires": { "$lt": finished } },
            id_of,
        ))
        .await?;
        self.within(self.prune_tombstones(before(now, retention.tasks_for.max(TOMBSTONES_FOR))?))
            .await?;
        self.prune_events(before(now, retention.events_for)?, retention.events_max)
            .await
    }

    /// One whose deletion is not complete stays: it is what says that the deletion has happened.
    async fn prune_tombstones(&self, before: i64) -> Result<()> {
        let intents = all(self.intents.find(doc! {})).await?;
        let unfinished: Vec<String> = intents.into_iter().map(|intent| intent.id).collect();
        let old = doc! { "record.at": { "$lt": before }, "intent": { "$nin": unfinished } };
        forget(&self.tombstones, old, |stored: &Stored<Tombstone>| {
            stored.id.clone()
        })
        .await
    }

    async fn prune_events(&self, before: i64, kept: u64) -> Result<()> {
        let kept = i64::try_from(kept).unwrap_or(i64::MAX);
        let long = doc! { "seq": { "$gt": kept } };
        let hints = self.within(page(self.hints.find(long), STEP_MAX)).await?;
        for hint in hints {
            self.within(self.prune_log(&hint, before, kept)).await?;
        }
        Ok(())
    }

    /// Events go from the beginning up to the first that is young: a log has no gaps.
    async fn prune_log(&self, hint: &Hint, before: i64, kept: i64) -> Result<()> {
        let last = place(&hint.id, hint.seq.abs_diff(kept));
        let range = doc! { "_id": { "$gt": place(&hint.id, 0), "$lte": last } };
        let events = page(self.events.find(range).sort(doc! { "_id": 1 }), STEP_MAX).await?;
        let old = events.iter().take_while(|event| event.at < before);
        let Some(last) = old.last() else {
            return Ok(());
        };
        let is_hinted = last.seq == hint.seq;
        let range = doc! { "$gt": place(&hint.id, 0), "$lt": &last.id };
        delete_all(&self.events, doc! { "_id": range }).await?;
        if is_hinted {
            return self.hide_event(&last.id).await;
        }
        delete_all(&self.events, doc! { "_id": &last.id }).await
    }

    /// The event at the hint holds the total, and the next number follows from it.
    async fn hide_event(&self, place: &str) -> Result<()> {
        let hide = doc! { "$set": { "pruned": true, "body": "null" } };
        let hidden = self.events.update_one(doc! { "_id": place }, hide).await;
        hidden.map(drop).map_err(fault)
    }
}

fn id_of<T>(expiring: &Expiring<T>) -> String {
    expiring.id.clone()
}

/// Deletes up to [`STEP_MAX`] documents.
async fn forget<T>(
    collection: &Collection<T>,
    filter: Document,
    id: impl Fn(&T) -> String,
) -> Result<()>
where
    T: DeserializeOwned + Send + Sync,
{
    let found = page(collection.find(filter), STEP_MAX).await?;
    let ids: Vec<String> = found.iter().map(id).collect();
    if ids.is_empty() {
        return Ok(());
    }
    delete_all(collection, doc! { "_id": { "$in": ids } }).await
}

fn before(now: Timestamp, age: Duration) -> Result<i64> {
    let time = now.checked_sub(age).map_err(StoreError::broken)?;
    Ok(nanoseconds(time))
}
