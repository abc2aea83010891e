//! Pruning of what is no longer needed, in steps that are each short.

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

/// Most documents of a kind that are deleted at a time.
const STEP_MAX: u32 = 10_000;

/// Retention of tombstones: no writer is so slow that it would miss one of this age.
const TOMBSTONES_FOR: Duration = Duration::from_hours(1);

impl Tables {
    /// Prunes all kinds; returns `true` if there may be more. A step that fails does not prevent
    /// the others.
    pub(super) async fn prune(&self, now: Timestamp, retention: Retention) -> Result<bool> {
        let finished = before(now, retention.tasks_for)?;
        let buried = before(now, retention.tasks_for.max(TOMBSTONES_FOR))?;
        let written = before(now, retention.events_for)?;
        let expired = doc! { "expires": { "$lt": nanoseconds(now) } };
        let settled = doc! { "finished_at": { "$lt": finished } };
        let claimed = doc! { "expires": { "$lt": finished } };
        let key = |task: &StoredTask| task.id.clone();
        let steps = [
            self.within(forget(&self.sessions, expired.clone(), id_of))
                .await,
            self.within(forget(&self.tickets, expired.clone(), id_of))
                .await,
            self.within(forget(&self.nonces, expired, id_of)).await,
            self.within(forget(&self.tasks, settled, key)).await,
            self.within(forget(&self.claims, claimed, id_of)).await,
            self.within(self.prune_tombstones(buried)).await,
            self.prune_events(written, retention.events_max).await,
        ];
        let are_more: Vec<bool> = steps.into_iter().collect::<Result<_>>()?;
        Ok(are_more.contains(&true))
    }

    /// Prunes tombstones. One whose deletion is not complete stays: it is the record of the
    /// deletion.
    async fn prune_tombstones(&self, before: i64) -> Result<bool> {
        let intents = all(self.intents.find(doc! {})).await?;
        let unfinished: Vec<String> = intents.into_iter().map(|intent| intent.id).collect();
        let old = doc! { "record.at": { "$lt": before }, "intent": { "$nin": unfinished } };
        forget(&self.tombstones, old, |stored: &Stored<Tombstone>| {
            stored.id.clone()
        })
        .await
    }

    async fn prune_events(&self, before: i64, kept: u64) -> Result<bool> {
        let kept = i64::try_from(kept).unwrap_or(i64::MAX);
        let long = doc! { "seq": { "$gt": kept } };
        let hints = self.within(page(self.hints.find(long), STEP_MAX)).await?;
        let mut are_more = false;
        for hint in hints {
            are_more |= self.within(self.prune_log(&hint, before, kept)).await?;
        }
        Ok(are_more)
    }

    /// Prunes a topic's events from the beginning up to the first that is young: a log has no gaps.
    /// Returns `true` if there may be more.
    async fn prune_log(&self, hint: &Hint, before: i64, kept: i64) -> Result<bool> {
        let last = place(&hint.id, hint.seq.abs_diff(kept));
        let range = doc! { "_id": { "$gt": place(&hint.id, 0), "$lte": last } };
        let oldest = |limit| {
            let found = self.events.find(range.clone()).sort(doc! { "_id": 1 });
            page(found, limit)
        };
        // Most logs that are long are young: one event tells it.
        if oldest(1).await?.iter().all(|event| event.at >= before) {
            return Ok(false);
        }
        let events = oldest(STEP_MAX).await?;
        let old = events.iter().take_while(|event| event.at < before).count();
        let Some(last) = events[..old].last() else {
            return Ok(false);
        };
        let is_hinted = last.seq == hint.seq;
        let range = doc! { "$gt": place(&hint.id, 0), "$lt": &last.id };
        delete_all(&self.events, doc! { "_id": range }).await?;
        if is_hinted {
            self.hide_event(&last.id).await?;
        } else {
            delete_all(&self.events, doc! { "_id": &last.id }).await?;
        }
        Ok(old == STEP_MAX as usize)
    }

    /// Hides the event at the hint. Its record stays: it holds the total and the last number.
    async fn hide_event(&self, place: &str) -> Result<()> {
        let hide = doc! { "$set": { "pruned": true, "body": "null" } };
        let hidden = self.events.update_one(doc! { "_id": place }, hide).await;
        hidden.map(drop).map_err(fault)
    }
}

fn id_of<T>(expiring: &Expiring<T>) -> String {
    expiring.id.clone()
}

/// Deletes up to [`STEP_MAX`] documents; returns `true` if there may be more.
async fn forget<T>(
    collection: &Collection<T>,
    filter: Document,
    id: impl Fn(&T) -> String,
) -> Result<bool>
where
    T: DeserializeOwned + Send + Sync,
{
    let found = page(collection.find(filter), STEP_MAX).await?;
    let ids: Vec<String> = found.iter().map(id).collect();
    if ids.is_empty() {
        return Ok(false);
    }
    let are_more = ids.len() == STEP_MAX as usize;
    delete_all(collection, doc! { "_id": { "$in": ids } }).await?;
    Ok(are_more)
}

fn before(now: Timestamp, age: Duration) -> Result<i64> {
    let time = now.checked_sub(age).map_err(StoreError::broken)?;
    Ok(nanoseconds(time))
}
