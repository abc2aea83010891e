use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::json;

use super::log;
use super::values::{At, Natural, before, now};
use crate::model::{Author, Effects, Event, Id, NewTask, Picture, StorageUsed, TaskKind, topic};
use crate::store::{PicturesOf, Result, StoreError, deleted_picture};

pub(super) fn insert_pictures(
    db: &Connection,
    pictures: &[Picture],
    effects: Effects,
) -> Result<Vec<Event>> {
    for picture in pictures {
        insert(db, picture)?;
    }
    log::store(db, effects)
}

fn insert(db: &Connection, picture: &Picture) -> Result<()> {
    let sql = "INSERT INTO pictures
        (id, album, owner, owner_name, caption, media, width, height, bytes, created_at, alt)
        SELECT ?1, id, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11 FROM albums WHERE id = ?2";
    let added = db.prepare_cached(sql)?.execute(params![
        picture.id,
        picture.album,
        picture.owner.id,
        picture.owner.name,
        picture.caption,
        picture.media,
        picture.width,
        picture.height,
        Natural(picture.bytes),
        At(picture.created_at),
        picture.alt,
    ])?;
    if added == 0 {
        return Err(StoreError::Conflict("the album is gone"));
    }
    Ok(())
}

pub(super) fn picture(db: &Connection, id: Id) -> Result<Option<Picture>> {
    let sql = "SELECT * FROM pictures WHERE id = ?1 AND NOT removed";
    let mut query = db.prepare_cached(sql)?;
    Ok(query.query_row([id], from_row).optional()?)
}

/// Fails if a picture is gone.
pub(super) fn require(db: &Connection, id: Id) -> Result<()> {
    let sql = "SELECT 1 FROM pictures WHERE id = ?1 AND NOT removed";
    if db.prepare_cached(sql)?.exists([id])? {
        return Ok(());
    }
    Err(StoreError::Conflict("the picture is gone"))
}

pub(super) fn pictures(
    db: &Connection,
    of: PicturesOf,
    until: Option<Id>,
    limit: u32,
) -> Result<Vec<Picture>> {
    let until = before(until.as_ref());
    let sql = match of {
        PicturesOf::Everybody => EVERYBODY,
        PicturesOf::Album(_) => OF_ALBUM,
        PicturesOf::Owner(_) => OF_OWNER,
    };
    let mut query = db.prepare_cached(sql)?;
    let rows = match of {
        PicturesOf::Everybody => query.query_map(params![until, limit], from_row)?,
        PicturesOf::Album(id) | PicturesOf::Owner(id) => {
            query.query_map(params![until, limit, id], from_row)?
        }
    };
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

const EVERYBODY: &str = "SELECT * FROM pictures
    WHERE id < ?1 AND NOT removed ORDER BY id DESC LIMIT ?2";
const OF_ALBUM: &str = "SELECT * FROM pictures
    WHERE album = ?3 AND id < ?1 AND NOT removed ORDER BY id DESC LIMIT ?2";
const OF_OWNER: &str = "SELECT * FROM pictures
    WHERE owner = ?3 AND id < ?1 AND NOT removed ORDER BY id DESC LIMIT ?2";

pub(super) fn delete_picture(db: &Connection, id: Id) -> Result<Option<Vec<Event>>> {
    let sql = "UPDATE pictures SET removed = TRUE WHERE id = ?1 AND NOT removed";
    if db.prepare_cached(sql)?.execute([id])? == 0 {
        return Ok(None);
    }
    log::blank(db, topic::TIMELINE, &id.to_string())?;
    let removal = NewTask {
        key: format!("remove-picture:{id}"),
        kind: TaskKind::Remove,
        payload: json!({ "picture": id }),
        due: now(),
    };
    let effects = Effects {
        events: vec![deleted_picture(id)],
        tasks: vec![removal],
    };
    log::store(db, effects).map(Some)
}

pub(super) fn set_alt(db: &Connection, id: Id, alt: &str) -> Result<Option<Picture>> {
    let sql = "UPDATE pictures SET alt = ?2 WHERE id = ?1 AND NOT removed";
    db.prepare_cached(sql)?.execute(params![id, alt])?;
    picture(db, id)
}

pub(super) fn storage_used(db: &Connection, owner: Id) -> Result<StorageUsed> {
    let mut query = db.prepare_cached("SELECT pictures, bytes FROM storage WHERE user = ?1")?;
    let used = query.query_row([owner], |row| {
        let (Natural(pictures), Natural(bytes)) = (row.get("pictures")?, row.get("bytes")?);
        Ok(StorageUsed { pictures, bytes })
    });
    Ok(used.optional()?.unwrap_or_default())
}

pub(super) fn removed_pictures(db: &Connection, album: Id, limit: u32) -> Result<Vec<Id>> {
    let sql = "SELECT id FROM pictures WHERE album = ?1 AND removed
        AND NOT EXISTS (SELECT 1 FROM albums WHERE id = ?1) ORDER BY id LIMIT ?2";
    let mut query = db.prepare_cached(sql)?;
    let rows = query.query_map(params![album, limit], |row| row.get("id"))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn purge_picture(db: &Connection, id: Id) -> Result<()> {
    let sql = "DELETE FROM pictures WHERE id = ?1 AND removed";
    if db.prepare_cached(sql)?.execute([id])? == 0 {
        return Ok(());
    }
    db.prepare_cached("DELETE FROM likes WHERE picture = ?1")?
        .execute([id])?;
    db.prepare_cached("DELETE FROM comments WHERE picture = ?1")?
        .execute([id])?;
    log::delete(db, &topic::likes(id))?;
    log::delete(db, &topic::comments(id))?;
    log::blank(db, topic::TIMELINE, &id.to_string())
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Picture> {
    let Natural(bytes) = row.get("bytes")?;
    let At(created_at) = row.get("created_at")?;
    Ok(Picture {
        id: row.get("id")?,
        album: row.get("album")?,
        owner: Author {
            id: row.get("owner")?,
            name: row.get("owner_name")?,
        },
        caption: row.get("caption")?,
        alt: row.get("alt")?,
        media: row.get("media")?,
        width: row.get("width")?,
        height: row.get("height")?,
        bytes,
        created_at,
    })
}
