//! The events of each topic, in their order.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::outbox;
use super::values::{At, Json, Natural, now};
use crate::model::{Effects, Event, Head, Id, NewEvent};
use crate::store::{GONE, Result, StoreError};

/// Stores the effects of a change; returns the events that were written.
pub(super) fn store(db: &Connection, effects: Effects) -> Result<Vec<Event>> {
    let mut written = Vec::with_capacity(effects.events.len());
    for event in effects.events {
        written.extend(append(db, event)?);
    }
    outbox::add(db, &effects.tasks)?;
    Ok(written)
}

/// Writes an event, unless its topic has one of that key.
fn append(db: &Connection, new: NewEvent) -> Result<Option<Event>> {
    let end = topic_end(db, &new.topic)?;
    let total = end.head.total.checked_add(new.delta);
    let total = total
        .ok_or_else(|| StoreError::broken("the sum of a topic is beyond what can be counted"))?;
    let event = Event {
        topic: new.topic,
        seq: end.head.seq + 1,
        total,
        at: now(),
        body: new.body,
    };
    let sql =
        "INSERT INTO events (topic, seq, key, total, at, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
        ON CONFLICT (topic, key) DO NOTHING";
    let (seq, body) = (Natural(event.seq), event.body.to_string());
    let written = db.prepare_cached(sql)?.execute(params![
        end.topic,
        seq,
        new.key,
        event.total,
        At(event.at),
        body
    ])?;
    if written == 0 {
        return Ok(None);
    }
    let sql = "UPDATE topics SET seq = ?2, total = ?3 WHERE id = ?1";
    db.prepare_cached(sql)?
        .execute(params![end.topic, seq, event.total])?;
    Ok(Some(event))
}

/// A topic's end, where its next event goes.
struct End {
    topic: i64,
    head: Head,
}

fn topic_end(db: &Connection, name: &str) -> Result<End> {
    let sql = "SELECT id, seq, total FROM topics WHERE name = ?1";
    let found = db.prepare_cached(sql)?.query_row([name], |row| {
        Ok(End {
            topic: row.get("id")?,
            head: head_from_row(row)?,
        })
    });
    if let Some(end) = found.optional()? {
        return Ok(end);
    }
    db.prepare_cached("INSERT INTO topics (name) VALUES (?1)")?
        .execute([name])?;
    Ok(End {
        topic: db.last_insert_rowid(),
        head: Head::default(),
    })
}

pub(super) fn head(db: &Connection, topic: &str) -> Result<Option<Head>> {
    let mut query = db.prepare_cached("SELECT seq, total FROM topics WHERE name = ?1")?;
    Ok(query.query_row([topic], head_from_row).optional()?)
}

pub(super) fn heads(db: &Connection, topics: Vec<String>) -> Result<HashMap<String, Head>> {
    let mut heads = HashMap::with_capacity(topics.len());
    for topic in topics {
        if let Some(head) = head(db, &topic)? {
            heads.insert(topic, head);
        }
    }
    Ok(heads)
}

fn head_from_row(row: &Row<'_>) -> rusqlite::Result<Head> {
    let Natural(seq) = row.get("seq")?;
    let total = row.get("total")?;
    Ok(Head { seq, total })
}

pub(super) fn events(db: &Connection, topic: &str, after: u64, limit: u32) -> Result<Vec<Event>> {
    let sql = "SELECT seq, total, at, body FROM events
        WHERE topic = (SELECT id FROM topics WHERE name = ?1) AND seq > ?2 ORDER BY seq LIMIT ?3";
    let mut query = db.prepare_cached(sql)?;
    let rows = query.query_map(params![topic, Natural(after), limit], |row| {
        from_row(topic, row)
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn last_events(db: &Connection, topic: &str, limit: u32) -> Result<Vec<Event>> {
    let sql = "SELECT seq, total, at, body FROM events
        WHERE topic = (SELECT id FROM topics WHERE name = ?1) ORDER BY seq DESC LIMIT ?2";
    let mut query = db.prepare_cached(sql)?;
    let rows = query.query_map(params![topic, limit], |row| from_row(topic, row))?;
    let mut events: Vec<Event> = rows.collect::<rusqlite::Result<_>>()?;
    events.reverse();
    Ok(events)
}

fn from_row(topic: &str, row: &Row<'_>) -> rusqlite::Result<Event> {
    let Natural(seq) = row.get("seq")?;
    let At(at) = row.get("at")?;
    let Json(body) = row.get("body")?;
    Ok(Event {
        topic: topic.to_owned(),
        seq,
        total: row.get("total")?,
        at,
        body,
    })
}

pub(super) fn has(db: &Connection, topic: &str, key: &str) -> Result<bool> {
    let sql = "SELECT 1 FROM events
        WHERE topic = (SELECT id FROM topics WHERE name = ?1) AND key = ?2";
    Ok(db.prepare_cached(sql)?.exists([topic, key])?)
}

/// A name without its affinity (`+`) is compared as the index has it, and so searched for.
const RINGS_BY: &str = "SELECT topics.name, events.key
    FROM events INDEXED BY events_by_ringer CROSS JOIN topics ON topics.id = events.topic
    WHERE events.body ->> 'by' = (SELECT +name FROM users WHERE id = ?1)
        AND events.body ->> 'kind' IS NOT NULL
    LIMIT ?2";

/// Returns the events of all bells that name a user. Only bells have bodies of a kind.
pub(super) fn rings_by(db: &Connection, user: Id, limit: u32) -> Result<Vec<(String, String)>> {
    let mut query = db.prepare_cached(RINGS_BY)?;
    let rows = query.query_map(params![user, limit], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Blanks the body of an event, if there is one; its number and its total stay.
pub(super) fn blank(db: &Connection, topic: &str, key: &str) -> Result<()> {
    let sql = "UPDATE events SET body = ?3
        WHERE topic = (SELECT id FROM topics WHERE name = ?1) AND key = ?2";
    db.prepare_cached(sql)?.execute([topic, key, GONE])?;
    Ok(())
}

/// Deletes a topic with its events.
pub(super) fn delete(db: &Connection, topic: &str) -> Result<()> {
    let sql = "DELETE FROM events WHERE topic = (SELECT id FROM topics WHERE name = ?1)";
    db.prepare_cached(sql)?.execute([topic])?;
    db.prepare_cached("DELETE FROM topics WHERE name = ?1")?
        .execute([topic])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sqlite::database::Database;

    #[test]
    fn the_bells_that_somebody_rang_are_searched_for() {
        let directory = tempfile::tempdir().expect("there is room for a directory");
        let database = Database::at(&directory.path().join("social.db"));
        let opened = database.open_first().expect("it is made");
        let explain = format!("EXPLAIN QUERY PLAN {RINGS_BY}");
        let mut query = opened.connection.prepare(&explain).expect("good SQL");
        let steps = query.query_map(params![Id::new(), 1], |row| row.get::<_, String>("detail"));
        let steps: Vec<_> = steps.expect("it is explained").map(Result::ok).collect();
        let first = steps[0].as_deref().expect("a text");
        assert_eq!(
            first,
            "SEARCH events USING INDEX events_by_ringer (<expr>=?)"
        );
    }
}
