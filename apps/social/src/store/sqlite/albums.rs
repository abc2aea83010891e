use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::json;

use super::log;
use super::values::{At, now};
use crate::model::{Album, Author, Effects, Event, Id, NewTask, TaskKind};
use crate::store::{Result, deleted_album};

pub(super) fn insert_album(db: &Connection, album: &Album) -> Result<()> {
    let sql =
        "INSERT INTO albums (id, owner, owner_name, title, created_at) VALUES (?1, ?2, ?3, ?4, ?5)";
    let (owner, created) = (&album.owner, At(album.created_at));
    db.prepare_cached(sql)?.execute(params![
        album.id,
        owner.id,
        owner.name,
        album.title,
        created
    ])?;
    Ok(())
}

pub(super) fn album(db: &Connection, id: Id) -> Result<Option<Album>> {
    let mut query = db.prepare_cached("SELECT * FROM albums WHERE id = ?1")?;
    Ok(query.query_row([id], from_row).optional()?)
}

pub(super) fn albums(db: &Connection, owner: Id) -> Result<Vec<Album>> {
    let mut query = db.prepare_cached("SELECT * FROM albums WHERE owner = ?1 ORDER BY id DESC")?;
    let rows = query.query_map([owner], from_row)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn delete_album(db: &Connection, id: Id) -> Result<Option<Vec<Event>>> {
    let deleted = db
        .prepare_cached("DELETE FROM albums WHERE id = ?1")?
        .execute([id])?;
    if deleted == 0 {
        return Ok(None);
    }
    let sql = "UPDATE pictures SET removed = TRUE WHERE album = ?1 AND NOT removed";
    db.prepare_cached(sql)?.execute([id])?;
    let removal = NewTask {
        key: format!("remove-album:{id}"),
        kind: TaskKind::Remove,
        payload: json!({ "album": id }),
        due: now(),
    };
    let effects = Effects {
        events: vec![deleted_album(id)],
        tasks: vec![removal],
    };
    log::store(db, effects).map(Some)
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Album> {
    let At(created_at) = row.get("created_at")?;
    Ok(Album {
        id: row.get("id")?,
        owner: Author {
            id: row.get("owner")?,
            name: row.get("owner_name")?,
        },
        title: row.get("title")?,
        created_at,
    })
}
