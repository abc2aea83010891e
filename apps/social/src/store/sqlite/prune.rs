//! Pruning of what has expired, in steps that are short enough for other writes in between.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::Sqlite;
use super::values::{At, Natural};
use crate::store::{Result, Retention};

/// Most rows of each kind at a time.
const PRUNED_MAX: u32 = 10_000;

/// Most rows in one step.
const STEP_MAX: u32 = 500;

/// Prunes all kinds; returns `true` if there may be more.
pub(super) async fn prune(store: &Sqlite, now: Timestamp, retention: Retention) -> Result<bool> {
    let sessions = prune_rows(store, SESSIONS, now).await?;
    let tickets = prune_rows(store, TICKETS, now).await?;
    let nonces = prune_rows(store, NONCES, now).await?;
    let tasks = prune_rows(store, TASKS, before(now, retention.tasks_for)).await?;
    let old = before(now, retention.events_for);
    let events = prune_events(store, retention.events_max, old).await?;
    Ok(sessions || tickets || nonces || tasks || events)
}

fn before(now: Timestamp, age: Duration) -> Timestamp {
    now.checked_sub(age).unwrap_or(Timestamp::MIN)
}

const SESSIONS: &str = "DELETE FROM sessions WHERE token_hash IN
    (SELECT token_hash FROM sessions WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)";
const TICKETS: &str = "DELETE FROM tickets WHERE token_hash IN
    (SELECT token_hash FROM tickets WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)";
const NONCES: &str = "DELETE FROM nonces WHERE (key, nonce) IN
    (SELECT key, nonce FROM nonces WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)";
const TASKS: &str = "DELETE FROM tasks WHERE key IN
    (SELECT key FROM tasks WHERE settled_at <= ?1 ORDER BY settled_at LIMIT ?2)";

/// Prunes rows of one kind; returns `true` if there may be more.
async fn prune_rows(store: &Sqlite, sql: &'static str, until: Timestamp) -> Result<bool> {
    for _ in 0..PRUNED_MAX / STEP_MAX {
        let gone = store.write(move |db| delete_some(db, sql, until)).await?;
        if gone < STEP_MAX as usize {
            return Ok(false);
        }
    }
    Ok(true)
}

fn delete_some(db: &Connection, sql: &str, until: Timestamp) -> Result<usize> {
    Ok(db
        .prepare_cached(sql)?
        .execute(params![At(until), STEP_MAX])?)
}

/// Prunes events; returns `true` if there may be more.
async fn prune_events(store: &Sqlite, events_max: u64, until: Timestamp) -> Result<bool> {
    let mut topics = store
        .read(move |db| overlong_topics(db, events_max, until))
        .await?;
    for _ in 0..PRUNED_MAX / STEP_MAX {
        topics = store
            .write(move |db| prune_topics(db, topics, until))
            .await?;
        if topics.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A topic with events that may be deleted.
#[derive(Clone, Copy, Debug)]
struct Overlong {
    topic: i64,
    /// The number of the last one that may.
    until: i64,
}

/// Returns the topics with too many events. It reads the end of every topic, so it runs beside the
/// writer.
fn overlong_topics(
    db: &Connection,
    events_max: u64,
    until: Timestamp,
) -> Result<VecDeque<Overlong>> {
    let sql = "SELECT id, seq - ?1 AS until FROM topics WHERE seq - pruned > ?1
        AND (SELECT at FROM events WHERE topic = id ORDER BY seq LIMIT 1) <= ?2 LIMIT ?3";
    let mut query = db.prepare_cached(sql)?;
    let limits = params![Natural(events_max), At(until), PRUNED_MAX];
    let rows = query.query_map(limits, |row| {
        Ok(Overlong {
            topic: row.get("id")?,
            until: row.get("until")?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Prunes in one step; returns the topics that are left.
fn prune_topics(
    db: &Connection,
    mut topics: VecDeque<Overlong>,
    until: Timestamp,
) -> Result<VecDeque<Overlong>> {
    let mut left = STEP_MAX;
    while let Some(topic) = topics.front() {
        left -= prune_topic(db, *topic, until, left)?;
        if left == 0 {
            break;
        }
        topics.pop_front();
    }
    Ok(topics)
}

/// Deletes the oldest events, up to `limit` and up to the first that is too young, so that no gap
/// is left behind them. Returns their number.
fn prune_topic(db: &Connection, overlong: Overlong, until: Timestamp, limit: u32) -> Result<u32> {
    let sql = "SELECT seq, at FROM events WHERE topic = ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3";
    let mut query = db.prepare_cached(sql)?;
    let mut rows = query.query(params![overlong.topic, overlong.until, limit])?;
    let (mut count, mut last): (u32, Option<i64>) = (0, None);
    while let Some(row) = rows.next()? {
        let At(at) = row.get("at")?;
        if at > until {
            break;
        }
        count += 1;
        last = Some(row.get("seq")?);
    }
    drop(rows);
    if let Some(last) = last {
        delete_until(db, overlong.topic, last)?;
    }
    Ok(count)
}

fn delete_until(db: &Connection, topic: i64, seq: i64) -> Result<()> {
    let sql = "UPDATE topics SET pruned = ?2 WHERE id = ?1";
    db.prepare_cached(sql)?.execute([topic, seq])?;
    let sql = "DELETE FROM events WHERE topic = ?1 AND seq <= ?2";
    db.prepare_cached(sql)?.execute([topic, seq])?;
    Ok(())
}
