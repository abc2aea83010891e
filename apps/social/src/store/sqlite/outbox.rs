use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::values::{At, Json, now};
use crate::model::{NewTask, Outcome, Task, TaskKind};
use crate::store::Result;

pub(super) fn add(db: &Connection, tasks: &[NewTask]) -> Result<()> {
    let sql = "INSERT INTO tasks (key, kind, payload, due, added_at) VALUES (?1, ?2, ?3, ?4, ?5)
        ON CONFLICT DO NOTHING";
    for task in tasks {
        let (payload, due, added) = (task.payload.to_string(), At(task.due), At(now()));
        db.prepare_cached(sql)?
            .execute(params![task.key, task.kind, payload, due, added])?;
    }
    Ok(())
}

pub(super) fn claim(
    db: &Connection,
    kind: TaskKind,
    now: Timestamp,
    lease: Duration,
    limit: u32,
) -> Result<Vec<Task>> {
    let mut tasks = due(db, kind, now, limit)?;
    let lease_ends = now.checked_add(lease).unwrap_or(Timestamp::MAX);
    let sql = "UPDATE tasks SET attempts = ?2, due = ?3 WHERE key = ?1";
    for task in &mut tasks {
        task.attempts += 1;
        db.prepare_cached(sql)?
            .execute(params![task.key, task.attempts, At(lease_ends)])?;
    }
    Ok(tasks)
}

fn due(db: &Connection, kind: TaskKind, now: Timestamp, limit: u32) -> Result<Vec<Task>> {
    let sql = "SELECT key, payload, attempts, added_at FROM tasks
        WHERE kind = ?1 AND due <= ?2 AND settled_at IS NULL ORDER BY due LIMIT ?3";
    let mut query = db.prepare_cached(sql)?;
    let rows = query.query_map(params![kind, At(now), limit], |row| {
        let Json(payload) = row.get("payload")?;
        let At(added_at) = row.get("added_at")?;
        Ok(Task {
            key: row.get("key")?,
            kind,
            payload,
            attempts: row.get("attempts")?,
            added_at,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Records an outcome. The number of attempts tells if another replica has claimed the task since.
pub(super) fn settle(db: &Connection, key: &str, attempts: u32, outcome: &Outcome) -> Result<()> {
    match outcome {
        Outcome::Done => end(db, key, attempts, None),
        Outcome::GaveUp(error) => end(db, key, attempts, Some(error)),
        Outcome::Retry { due, error } => {
            let sql = "UPDATE tasks SET due = ?3, error = ?4
                WHERE key = ?1 AND attempts = ?2 AND settled_at IS NULL";
            db.prepare_cached(sql)?
                .execute(params![key, attempts, At(*due), error])?;
            Ok(())
        }
    }
}

fn end(db: &Connection, key: &str, attempts: u32, error: Option<&str>) -> Result<()> {
    let sql = "UPDATE tasks SET settled_at = ?3, error = ?4
        WHERE key = ?1 AND attempts = ?2 AND settled_at IS NULL";
    db.prepare_cached(sql)?
        .execute(params![key, attempts, At(now()), error])?;
    Ok(())
}

pub(super) fn next(db: &Connection, kind: TaskKind) -> Result<Option<Timestamp>> {
    let sql = "SELECT min(due) FROM tasks WHERE kind = ?1 AND settled_at IS NULL";
    let due: Option<At> = db
        .prepare_cached(sql)?
        .query_row([kind], |row| row.get(0))?;
    Ok(due.map(|At(due)| due))
}
