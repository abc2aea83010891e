//! The logs of the topics.
//!
//! An event's identifier is its [place]: the topic and the number. A [writer](super::appending)
//! inserts at the first place that is free; of two that want the same place one gets it, and the
//! other one takes the next. So numbers have no gaps, no event is there before all earlier ones
//! are, and each total is right.
//!
//! The end of a log is found from a *hint*, a number near the end, by reading the places behind it.
//! A hint may be too low, never too high. It is valid as long as the event that it names is there:
//! only the beginning of a log is ever pruned, and only up to the hint. If that event is not there,
//! the index is used. A topic without a hint has never been pruned, so its log begins at 1.

use std::collections::HashMap;

use mongodb::bson::doc;

use super::fault::fault;
use super::records::{PlannedEvent, StoredEvent};
use super::tables::{Tables, all, delete, delete_all, find, page};
use crate::model::{Event, Head, Id, topic};
use crate::store::{GONE, Result};

/// Returns the place of a number, which is padded, so that places sort as numbers do.
pub(super) fn place(topic: &str, seq: u64) -> String {
    format!("{topic}#{seq:020}")
}

/// Returns a bound behind all places of the topic: `$` follows `#`.
pub(super) fn behind(topic: &str) -> String {
    format!("{topic}$")
}

impl Tables {
    pub(super) async fn end(&self, topic: &str) -> Result<Head> {
        let hint = find(&self.hints, topic).await?;
        let hinted = hint.map_or(0, |hint| hint.seq.unsigned_abs());
        let at_hint = find(&self.events, &place(topic, hinted)).await?;
        match at_hint {
            Some(event) => self.walk(event.head(), topic).await,
            None if hinted == 0 => self.walk(Head::default(), topic).await,
            None => self.newest(topic).await,
        }
    }

    async fn walk(&self, mut head: Head, topic: &str) -> Result<Head> {
        while let Some(event) = find(&self.events, &place(topic, head.seq + 1)).await? {
            head = event.head();
        }
        Ok(head)
    }

    async fn newest(&self, topic: &str) -> Result<Head> {
        let range = doc! { "_id": { "$gt": place(topic, 0), "$lt": behind(topic) } };
        let found = self.events.find_one(range).sort(doc! { "_id": -1 });
        let newest = found.await.map_err(fault)?;
        Ok(newest.map_or_else(Head::default, |event| event.head()))
    }

    /// Returns the ends of all topics at once, as [`end`](Self::end) does for one.
    pub(super) async fn heads(&self, topics: &[String]) -> Result<HashMap<String, Head>> {
        let mut heads = HashMap::new();
        if let [topic] = topics {
            heads.insert(topic.clone(), self.end(topic).await?);
        } else {
            let hints = self.hints(topics).await?;
            let near = self.events_near(&hints).await?;
            for (topic, hint) in hints {
                let head = match (
                    near.get(&place(&topic, hint)),
                    near.get(&place(&topic, hint + 1)),
                ) {
                    (_, Some(next)) => self.walk(*next, &topic).await?,
                    (Some(at_hint), None) => *at_hint,
                    (None, None) if hint == 0 => Head::default(),
                    (None, None) => self.newest(&topic).await?,
                };
                heads.insert(topic, head);
            }
        }
        heads.retain(|_, head| head.seq > 0);
        Ok(heads)
    }

    /// Returns the hint of each topic, or 0.
    async fn hints(&self, topics: &[String]) -> Result<HashMap<String, u64>> {
        let mut hints: HashMap<String, u64> =
            topics.iter().map(|topic| (topic.clone(), 0)).collect();
        let found = self.hints.find(doc! { "_id": { "$in": topics } });
        for hint in all(found).await? {
            hints.insert(hint.id, hint.seq.unsigned_abs());
        }
        Ok(hints)
    }

    /// Returns the events at the hints and right behind them, by place.
    async fn events_near(&self, hints: &HashMap<String, u64>) -> Result<HashMap<String, Head>> {
        let places: Vec<String> = hints
            .iter()
            .flat_map(|(topic, hint)| [place(topic, *hint), place(topic, hint + 1)])
            .collect();
        let found = self.events.find(doc! { "_id": { "$in": places } });
        let events = all(found).await?;
        Ok(events
            .into_iter()
            .map(|event| (event.id.clone(), event.head()))
            .collect())
    }

    pub(super) async fn events(&self, topic: &str, after: u64, limit: u32) -> Result<Vec<Event>> {
        let range = doc! { "$gt": place(topic, after), "$lt": behind(topic) };
        let found = self.events.find(doc! { "_id": range, "pruned": false });
        let events = page(found.sort(doc! { "_id": 1 }), limit).await?;
        events.into_iter().map(StoredEvent::into_event).collect()
    }

    pub(super) async fn last_events(&self, topic: &str, limit: u32) -> Result<Vec<Event>> {
        let range = doc! { "$gt": place(topic, 0), "$lt": behind(topic) };
        let found = self.events.find(doc! { "_id": range, "pruned": false });
        let events = page(found.sort(doc! { "_id": -1 }), limit).await?;
        events
            .into_iter()
            .rev()
            .map(StoredEvent::into_event)
            .collect()
    }

    pub(super) async fn has_event(&self, topic: &str, key: &str) -> Result<bool> {
        let event = doc! { "topic": topic, "key": key };
        let found = self.events.find_one(event).await.map_err(fault)?;
        Ok(found.is_some())
    }

    /// Returns the events of all bells that name a user. A body is a text whose keys are sorted,
    /// and that of a bell begins with `by`, so the index on bodies has those of one name side by
    /// side.
    pub(super) async fn rings_by(&self, user: Id, limit: u32) -> Result<Vec<(String, String)>> {
        let Some(user) = find(&self.users, &user.to_string()).await? else {
            return Ok(Vec::new());
        };
        let [from, to] = topic::BELLS;
        let begins = format!(r#"{{"by":"{}"#, user.record.name);
        // `#` follows the quotation mark that ends the name.
        let says = doc! { "$gte": format!("{begins}\""), "$lt": format!("{begins}#") };
        let rings = doc! { "_id": { "$gt": from, "$lt": to }, "body": says };
        let rings = page(self.events.find(rings), limit).await?;
        Ok(rings
            .into_iter()
            .map(|ring| (ring.topic, ring.key))
            .collect())
    }

    /// Blanks the body of an event, if there is one; its number and its total stay. It can be
    /// repeated.
    pub(super) async fn blank_event(&self, topic: &str, key: &str) -> Result<()> {
        let event = doc! { "topic": topic, "key": key };
        let blank = doc! { "$set": { "body": GONE } };
        let blanked = self.events.update_one(event, blank).await;
        blanked.map(drop).map_err(fault)
    }

    /// Deletes all events of a topic, for ever.
    pub(super) async fn delete_log(&self, topic: &str) -> Result<()> {
        let range = doc! { "$gt": place(topic, 0), "$lt": behind(topic) };
        delete_all(&self.events, doc! { "_id": range }).await?;
        delete(&self.hints, topic).await.map(drop)
    }
}

impl StoredEvent {
    pub(super) fn next(end: Head, planned: &PlannedEvent, intent: &str) -> Self {
        let seq = end.seq + 1;
        Self {
            id: place(&planned.topic, seq),
            topic: planned.topic.clone(),
            key: planned.key.clone(),
            intent: intent.to_owned(),
            seq: i64::try_from(seq).unwrap_or(i64::MAX),
            total: end.total + planned.delta,
            at: planned.at,
            body: planned.body.clone(),
            pruned: false,
        }
    }

    pub(super) fn head(&self) -> Head {
        Head {
            seq: self.seq.unsigned_abs(),
            total: self.total,
        }
    }
}
