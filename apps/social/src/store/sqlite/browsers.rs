use rusqlite::{Connection, Row, params};

use super::values::Address;
use crate::model::{Id, PushSubscription};
use crate::store::Result;

pub(super) fn insert_push(db: &Connection, subscription: &PushSubscription) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO pushes (endpoint, user, p256dh, auth, session)
        VALUES (?1, ?2, ?3, ?4, ?5)";
    db.prepare_cached(sql)?.execute(params![
        subscription.endpoint.as_str(),
        subscription.user,
        subscription.p256dh,
        subscription.auth,
        subscription.session,
    ])?;
    Ok(())
}

pub(super) fn pushes(db: &Connection, user: Id) -> Result<Vec<PushSubscription>> {
    let mut query = db.prepare_cached("SELECT * FROM pushes WHERE user = ?1")?;
    let rows = query.query_map([user], from_row)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn delete_push(db: &Connection, endpoint: &str) -> Result<()> {
    let sql = "DELETE FROM pushes WHERE endpoint = ?1";
    db.prepare_cached(sql)?.execute([endpoint])?;
    Ok(())
}

pub(super) fn delete_pushes(db: &Connection, user: Id) -> Result<()> {
    let sql = "DELETE FROM pushes WHERE user = ?1";
    db.prepare_cached(sql)?.execute([user])?;
    Ok(())
}

pub(super) fn delete_pushes_of_session(db: &Connection, token_hash: &str) -> Result<()> {
    let sql = "DELETE FROM pushes WHERE session = ?1";
    db.prepare_cached(sql)?.execute([token_hash])?;
    Ok(())
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<PushSubscription> {
    let Address(endpoint) = row.get("endpoint")?;
    Ok(PushSubscription {
        endpoint,
        user: row.get("user")?,
        p256dh: row.get("p256dh")?,
        auth: row.get("auth")?,
        session: row.get("session")?,
    })
}
