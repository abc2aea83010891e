//! Tickets: rights that were sent by mail.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::values::{At, Natural};
use super::{outbox, users};
use crate::model::{Id, NewTask, Ticket, User, UserChange};
use crate::store::Result;

pub(super) fn insert_ticket(db: &Connection, ticket: &Ticket) -> Result<()> {
    let sql = "INSERT INTO tickets (token_hash, user, purpose, email, generation, expires_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    db.prepare_cached(sql)?.execute(params![
        ticket.token_hash,
        ticket.user,
        ticket.purpose,
        ticket.email,
        Natural(ticket.generation),
        At(ticket.expires_at),
    ])?;
    Ok(())
}

pub(super) fn ticket(db: &Connection, token_hash: &str, now: Timestamp) -> Result<Option<Ticket>> {
    let sql = "SELECT * FROM tickets WHERE token_hash = ?1 AND expires_at > ?2";
    let mut query = db.prepare_cached(sql)?;
    let found = query.query_row(params![token_hash, At(now)], |row| {
        let At(expires_at) = row.get("expires_at")?;
        let Natural(generation) = row.get("generation")?;
        Ok(Ticket {
            token_hash: row.get("token_hash")?,
            user: row.get("user")?,
            purpose: row.get("purpose")?,
            email: row.get("email")?,
            generation,
            expires_at,
        })
    });
    Ok(found.optional()?)
}

pub(super) fn use_ticket(
    db: &Connection,
    ticket: &Ticket,
    change: &UserChange,
    tasks: &[NewTask],
) -> Result<Option<User>> {
    let sql = "DELETE FROM tickets WHERE token_hash = ?1";
    if db.prepare_cached(sql)?.execute([&ticket.token_hash])? == 0 {
        return Ok(None);
    }
    outbox::add(db, tasks)?;
    users::update_user(db, ticket.user, change)
}

pub(super) fn delete_tickets(db: &Connection, user: Id) -> Result<()> {
    let sql = "DELETE FROM tickets WHERE user = ?1";
    db.prepare_cached(sql)?.execute([user])?;
    Ok(())
}
