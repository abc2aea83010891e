use rusqlite::{Connection, OptionalExtension, Row, params};

use super::values::{At, after};
use super::{log, pictures};
use crate::model::{Author, Comment, Effects, Event, Id, topic};
use crate::store::Result;

pub(super) fn insert_comment(
    db: &Connection,
    comment: &Comment,
    effects: Effects,
) -> Result<Vec<Event>> {
    pictures::require(db, comment.picture)?;
    let sql = "INSERT INTO comments (id, picture, author, author_name, text, created_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let (author, created) = (&comment.author, At(comment.created_at));
    db.prepare_cached(sql)?.execute(params![
        comment.id,
        comment.picture,
        author.id,
        author.name,
        comment.text,
        created,
    ])?;
    log::store(db, effects)
}

pub(super) fn comment(db: &Connection, id: Id) -> Result<Option<Comment>> {
    let mut query = db.prepare_cached("SELECT * FROM comments WHERE id = ?1")?;
    Ok(query.query_row([id], from_row).optional()?)
}

pub(super) fn comments(
    db: &Connection,
    picture: Id,
    behind: Option<Id>,
    limit: u32,
) -> Result<Vec<Comment>> {
    let sql = "SELECT * FROM comments WHERE picture = ?1 AND id > ?2 ORDER BY id LIMIT ?3";
    let mut query = db.prepare_cached(sql)?;
    let rows = query.query_map(params![picture, after(behind.as_ref()), limit], from_row)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn comments_by(db: &Connection, author: Id, limit: u32) -> Result<Vec<Comment>> {
    let sql = "SELECT * FROM comments WHERE author = ?1 ORDER BY id LIMIT ?2";
    let mut query = db.prepare_cached(sql)?;
    let rows = query.query_map(params![author, limit], from_row)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn delete_comment(
    db: &Connection,
    id: Id,
    effects: Effects,
) -> Result<Option<Vec<Event>>> {
    let Some(comment) = comment(db, id)? else {
        return Ok(None);
    };
    db.prepare_cached("DELETE FROM comments WHERE id = ?1")?
        .execute([id])?;
    log::blank(db, &topic::comments(comment.picture), &id.to_string())?;
    log::store(db, effects).map(Some)
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Comment> {
    let At(created_at) = row.get("created_at")?;
    Ok(Comment {
        id: row.get("id")?,
        picture: row.get("picture")?,
        author: Author {
            id: row.get("author")?,
            name: row.get("author_name")?,
        },
        text: row.get("text")?,
        created_at,
    })
}
