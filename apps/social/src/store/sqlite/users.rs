use rusqlite::{Connection, OptionalExtension, Row, named_params, params};

use serde_json::json;

use super::values::{Address, At, Natural, after, now};
use super::{access, browsers, log, outbox, tickets};
use crate::model::{Effects, Event, Id, NewTask, TaskKind, User, UserChange, topic};
use crate::store::{Result, StoreError};

pub(super) fn insert_user(db: &Connection, user: &User, effects: Effects) -> Result<Vec<Event>> {
    let sql = "INSERT INTO users
        (id, name, display, email, about, password, webhook, digest, bell_seen, joined_at,
            generation, wanted_email)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT (name) DO NOTHING";
    let added = db.prepare_cached(sql)?.execute(params![
        user.id,
        user.name,
        user.display,
        user.email,
        user.about,
        user.password,
        user.webhook.as_ref().map(url::Url::as_str),
        user.digest,
        Natural(user.bell_seen),
        At(user.joined_at),
        Natural(user.generation),
        user.wanted_email,
    ])?;
    if added == 0 {
        return Err(StoreError::Conflict("the name is taken"));
    }
    log::store(db, effects)
}

pub(super) fn user(db: &Connection, id: Id) -> Result<Option<User>> {
    let mut query = db.prepare_cached("SELECT * FROM users WHERE id = ?1 AND NOT removed")?;
    Ok(query.query_row([id], from_row).optional()?)
}

pub(super) fn user_by_name(db: &Connection, name: &str) -> Result<Option<User>> {
    let sql = "SELECT * FROM users WHERE name = ?1 AND NOT removed";
    let mut query = db.prepare_cached(sql)?;
    Ok(query.query_row([name], from_row).optional()?)
}

pub(super) fn users_by_email(db: &Connection, email: &str, limit: u32) -> Result<Vec<User>> {
    let sql = "SELECT * FROM users WHERE email = ?1 AND NOT removed ORDER BY id LIMIT ?2";
    let mut query = db.prepare_cached(sql)?;
    let rows = query.query_map(params![email, limit], from_row)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn users(db: &Connection, behind: Option<Id>, limit: u32) -> Result<Vec<User>> {
    let sql = "SELECT * FROM users WHERE id > ?1 AND NOT removed ORDER BY id LIMIT ?2";
    let mut query = db.prepare_cached(sql)?;
    let rows = query.query_map(params![after(behind.as_ref()), limit], from_row)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn update_user(db: &Connection, id: Id, change: &UserChange) -> Result<Option<User>> {
    let sql = "UPDATE users SET
        display = coalesce(:display, display),
        about = coalesce(:about, about),
        webhook = CASE WHEN :has_webhook THEN :webhook ELSE webhook END,
        digest = coalesce(:digest, digest),
        bell_seen = max(bell_seen, :bell_seen),
        email = coalesce(:email, email),
        wanted_email = coalesce(:wanted_email, wanted_email),
        password = coalesce(:password, password),
        generation = generation + :ends_sessions
        WHERE id = :id AND NOT removed RETURNING *";
    let webhook = change.webhook.as_ref().and_then(Option::as_ref);
    let values = named_params! {
        ":id": id,
        ":display": change.display,
        ":about": change.about,
        ":has_webhook": change.webhook.is_some(),
        ":webhook": webhook.map(url::Url::as_str),
        ":digest": change.digest,
        ":bell_seen": Natural(change.bell_seen.unwrap_or(0)),
        ":email": change.email,
        ":wanted_email": change.wanted_email,
        ":password": change.password,
        ":ends_sessions": change.ends_sessions,
    };
    let mut query = db.prepare_cached(sql)?;
    let changed = query.query_row(values, from_row).optional()?;
    if change.ends_sessions && changed.is_some() {
        end_sessions(db, id)?;
    }
    Ok(changed)
}

fn end_sessions(db: &Connection, id: Id) -> Result<()> {
    access::delete_sessions(db, id)?;
    browsers::delete_pushes(db, id)?;
    tickets::delete_tickets(db, id)
}

pub(super) fn delete_user(db: &Connection, id: Id) -> Result<bool> {
    let sql = "UPDATE users SET removed = TRUE WHERE id = ?1 AND NOT removed";
    if db.prepare_cached(sql)?.execute([id])? == 0 {
        return Ok(false);
    }
    end_sessions(db, id)?;
    access::delete_keys(db, id)?;
    let removal = NewTask {
        key: format!("remove-user:{id}"),
        kind: TaskKind::Remove,
        payload: json!({ "user": id }),
        due: now(),
    };
    outbox::add(db, &[removal])?;
    Ok(true)
}

pub(super) fn purge_user(db: &Connection, id: Id) -> Result<()> {
    let sql = "DELETE FROM users WHERE id = ?1 AND removed";
    if db.prepare_cached(sql)?.execute([id])? == 0 {
        return Ok(());
    }
    end_sessions(db, id)?;
    log::delete(db, &topic::bell(id))
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<User> {
    let webhook: Option<Address> = row.get("webhook")?;
    let Natural(bell_seen) = row.get("bell_seen")?;
    let At(joined_at) = row.get("joined_at")?;
    let Natural(generation) = row.get("generation")?;
    Ok(User {
        id: row.get("id")?,
        name: row.get("name")?,
        display: row.get("display")?,
        email: row.get("email")?,
        wanted_email: row.get("wanted_email")?,
        about: row.get("about")?,
        password: row.get("password")?,
        webhook: webhook.map(|Address(url)| url),
        digest: row.get("digest")?,
        bell_seen,
        joined_at,
        generation,
    })
}
