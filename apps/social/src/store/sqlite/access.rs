//! Sessions, keys and nonces.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::browsers;
use super::values::{At, Natural};
use crate::model::{ApiKey, Id, Session};
use crate::store::Result;

pub(super) fn insert_session(db: &Connection, session: &Session) -> Result<()> {
    let sql = "INSERT INTO sessions (token_hash, user, csrf, expires_at, generation)
        VALUES (?1, ?2, ?3, ?4, ?5)";
    let ends = At(session.expires_at);
    db.prepare_cached(sql)?.execute(params![
        session.token_hash,
        session.user,
        session.csrf,
        ends,
        Natural(session.generation),
    ])?;
    Ok(())
}

pub(super) fn session(
    db: &Connection,
    token_hash: &str,
    now: Timestamp,
) -> Result<Option<Session>> {
    let sql = "SELECT * FROM sessions WHERE token_hash = ?1 AND expires_at > ?2";
    let mut query = db.prepare_cached(sql)?;
    let found = query.query_row(params![token_hash, At(now)], |row| {
        let At(expires_at) = row.get("expires_at")?;
        let Natural(generation) = row.get("generation")?;
        Ok(Session {
            token_hash: row.get("token_hash")?,
            user: row.get("user")?,
            csrf: row.get("csrf")?,
            expires_at,
            generation,
        })
    });
    Ok(found.optional()?)
}

pub(super) fn delete_session(db: &Connection, token_hash: &str) -> Result<()> {
    let sql = "DELETE FROM sessions WHERE token_hash = ?1";
    db.prepare_cached(sql)?.execute([token_hash])?;
    browsers::delete_pushes_of_session(db, token_hash)
}

pub(super) fn delete_sessions(db: &Connection, user: Id) -> Result<()> {
    let sql = "DELETE FROM sessions WHERE user = ?1";
    db.prepare_cached(sql)?.execute([user])?;
    Ok(())
}

pub(super) fn insert_key(db: &Connection, key: &ApiKey) -> Result<()> {
    let sql = "INSERT INTO keys (id, user, name, secret, created_at) VALUES (?1, ?2, ?3, ?4, ?5)";
    let created = At(key.created_at);
    db.prepare_cached(sql)?
        .execute(params![key.id, key.user, key.name, key.secret, created])?;
    Ok(())
}

pub(super) fn key(db: &Connection, id: Id) -> Result<Option<ApiKey>> {
    let mut query = db.prepare_cached("SELECT * FROM keys WHERE id = ?1")?;
    Ok(query.query_row([id], key_from_row).optional()?)
}

pub(super) fn keys(db: &Connection, user: Id) -> Result<Vec<ApiKey>> {
    let mut query = db.prepare_cached("SELECT * FROM keys WHERE user = ?1 ORDER BY id")?;
    let rows = query.query_map([user], key_from_row)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn key_from_row(row: &Row<'_>) -> rusqlite::Result<ApiKey> {
    let At(created_at) = row.get("created_at")?;
    Ok(ApiKey {
        id: row.get("id")?,
        user: row.get("user")?,
        name: row.get("name")?,
        secret: row.get("secret")?,
        created_at,
    })
}

pub(super) fn delete_key(db: &Connection, id: Id, user: Id) -> Result<bool> {
    let sql = "DELETE FROM keys WHERE id = ?1 AND user = ?2";
    Ok(db.prepare_cached(sql)?.execute([id, user])? > 0)
}

pub(super) fn delete_keys(db: &Connection, user: Id) -> Result<()> {
    let sql = "DELETE FROM keys WHERE user = ?1";
    db.prepare_cached(sql)?.execute([user])?;
    Ok(())
}

pub(super) fn use_nonce(db: &Connection, key: Id, nonce: &str, expires: Timestamp) -> Result<bool> {
    let sql =
        "INSERT INTO nonces (key, nonce, expires_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    Ok(db
        .prepare_cached(sql)?
        .execute(params![key, nonce, At(expires)])?
        > 0)
}
