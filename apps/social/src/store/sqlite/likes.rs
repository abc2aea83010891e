use rusqlite::{Connection, params};

use super::{log, pictures};
use crate::model::{Effects, Id, topic};
use crate::store::{LikeChange, Result};

pub(super) fn set_like(
    db: &Connection,
    picture: Id,
    user: Id,
    liked: bool,
    effects: Effects,
) -> Result<LikeChange> {
    pictures::require(db, picture)?;
    let sql = if liked { LIKE } else { UNLIKE };
    let changed = db.prepare_cached(sql)?.execute([picture, user])? > 0;
    let events = if changed {
        log::store(db, effects)?
    } else {
        Vec::new()
    };
    let end = log::head(db, &topic::likes(picture))?;
    Ok(LikeChange {
        changed,
        events,
        likes: end.unwrap_or_default(),
    })
}

const LIKE: &str = "INSERT INTO likes (picture, user) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
const UNLIKE: &str = "DELETE FROM likes WHERE picture = ?1 AND user = ?2";

pub(super) fn liked(db: &Connection, user: Id, pictures: &[Id]) -> Result<Vec<Id>> {
    let sql = "SELECT 1 FROM likes WHERE picture = ?1 AND user = ?2";
    let mut query = db.prepare_cached(sql)?;
    let mut liked = Vec::new();
    for picture in pictures {
        if query.exists([*picture, user])? {
            liked.push(*picture);
        }
    }
    Ok(liked)
}

pub(super) fn likes_by(
    db: &Connection,
    user: Id,
    after: Option<Id>,
    limit: u32,
) -> Result<Vec<Id>> {
    let sql = "SELECT picture FROM likes
        WHERE user = ?1 AND (?2 IS NULL OR picture > ?2) ORDER BY picture LIMIT ?3";
    let mut query = db.prepare_cached(sql)?;
    let rows = query.query_map(params![user, after, limit], |row| row.get("picture"))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
