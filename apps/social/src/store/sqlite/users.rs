use rusqlite::{Connection, OptionalExtension, Row, named_params, params};

use super::log;
use super::values::{Address, At, Natural, after};
use crate::model::{Effects, Event, Id, User, UserChange};
use crate::store::{Result, StoreError};

pub(super) fn insert_user(db: &Connection, user: &User, effects: Effects) -> Result<Vec<Event>> {
    let sql = "INSERT INTO users
        (id, name, display, email, about, password, webhook, digest, bell_seen, joined_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (name) DO NOTHING";
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
    ])?;
    if added == 0 {
        return Err(StoreError::Conflict("the name is taken"));
    }
    log::store(db, effects)
}

pub(super) fn user(db: &Connection, id: Id) -> Result<Option<User>> {
    let mut query = db.prepare_cached("SELECT * FROM users WHERE id = ?1")?;
    Ok(query.query_row([id], from_row).optional()?)
}

pub(super) fn user_by_name(db: &Connection, name: &str) -> Result<Option<User>> {
    let mut query = db.prepare_cached("SELECT * FROM users WHERE name = ?1")?;
    Ok(query.query_row([name], from_row).optional()?)
}

pub(super) fn users(db: &Connection, behind: Option<Id>, limit: u32) -> Result<Vec<User>> {
    let mut query = db.prepare_cached("SELECT * FROM users WHERE id > ?1 ORDER BY id LIMIT ?2")?;
    let rows = query.query_map(params![after(behind.as_ref()), limit], from_row)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn update_user(db: &Connection, id: Id, change: &UserChange) -> Result<Option<User>> {
    let sql = "UPDATE users SET
        display = coalesce(:display, display),
        about = coalesce(:about, about),
        webhook = CASE WHEN :has_webhook THEN :webhook ELSE webhook END,
        digest = coalesce(:digest, digest),
        bell_seen = max(bell_seen, :bell_seen)
        WHERE id = :id RETURNING *";
    let webhook = change.webhook.as_ref().and_then(Option::as_ref);
    let values = named_params! {
        ":id": id,
        ":display": change.display,
        ":about": change.about,
        ":has_webhook": change.webhook.is_some(),
        ":webhook": webhook.map(url::Url::as_str),
        ":digest": change.digest,
        ":bell_seen": Natural(change.bell_seen.unwrap_or(0)),
    };
    Ok(db
        .prepare_cached(sql)?
        .query_row(values, from_row)
        .optional()?)
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<User> {
    let webhook: Option<Address> = row.get("webhook")?;
    let Natural(bell_seen) = row.get("bell_seen")?;
    let At(joined_at) = row.get("joined_at")?;
    Ok(User {
        id: row.get("id")?,
        name: row.get("name")?,
        display: row.get("display")?,
        email: row.get("email")?,
        about: row.get("about")?,
        password: row.get("password")?,
        webhook: webhook.map(|Address(url)| url),
        digest: row.get("digest")?,
        bell_seen,
        joined_at,
    })
}
