//! Albums, and their deletion together with their pictures.

use jiff::Timestamp;
use mongodb::bson::doc;
use serde_json::json;

use super::fault::fault;
use super::intents::{Change, Intent, Settled};
use super::records::{Stored, Tombstone, nanoseconds};
use super::tables::{Tables, all, delete, find, insert, records};
use crate::model::{Album, Effects, Event, Id, NewTask, TaskKind};
use crate::store::{Result, StoreError, deleted_album};

/// The intent of what is stored without effects, which needs none.
const NO_INTENT: &str = "";

impl Tables {
    pub(super) async fn insert_album(&self, album: &Album) -> Result<()> {
        let document = Stored::new(&album.id, NO_INTENT, album.clone());
        if insert(&self.albums, &document).await? {
            return Ok(());
        }
        Err(StoreError::Conflict("there is an album of this identifier"))
    }

    /// Returns an album. Until its deletion is complete the record may still be there.
    pub(super) async fn album(&self, id: Id) -> Result<Option<Album>> {
        let stored = find(&self.albums, &id.to_string()).await?;
        Ok(stored.map(|stored| stored.record))
    }

    pub(super) async fn albums(&self, owner: Id) -> Result<Vec<Album>> {
        let found = self
            .albums
            .find(doc! { "record.owner.id": owner.to_string() });
        Ok(records(all(found.sort(doc! { "_id": -1 })).await?))
    }

    pub(super) async fn delete_album(&self, id: Id) -> Result<Option<Vec<Event>>> {
        if self.album(id).await?.is_none() {
            return Ok(None);
        }
        let effects = Effects {
            events: vec![deleted_album(id)],
            ..removal(format!("remove-album:{id}"), &json!({ "album": id }))
        };
        let intent = Intent::new(Change::DeleteAlbum, &album_tombstone(id), id, &effects);
        match self.make(&intent, Tombstone::now()).await? {
            Settled::Done(events) => Ok(Some(events)),
            Settled::Rejected | Settled::Undone => Ok(None),
        }
    }

    pub(super) async fn is_album_deleted(&self, id: Id) -> Result<bool> {
        let tombstone = find(&self.tombstones, &album_tombstone(id)).await?;
        Ok(tombstone.is_some())
    }

    /// Hides the pictures of a deleted album. The tombstone is there already, so a picture that is
    /// added now does not stay.
    pub(super) async fn hide_album(&self, id: Id) -> Result<()> {
        let of_album = doc! { "record.album": id.to_string(), "removed": false };
        let hide = doc! { "$set": { "removed": true } };
        self.pictures
            .update_many(of_album, hide)
            .await
            .map_err(fault)?;
        delete(&self.albums, &id.to_string()).await.map(drop)
    }
}

impl Tombstone {
    pub(super) fn now() -> Self {
        Self {
            at: nanoseconds(Timestamp::now()),
        }
    }
}

fn album_tombstone(id: Id) -> String {
    format!("album:{id}")
}

/// Returns the task that makes the Janitor delete the files.
pub(super) fn removal(key: String, payload: &serde_json::Value) -> Effects {
    let task = NewTask {
        key,
        kind: TaskKind::Remove,
        payload: payload.clone(),
        due: Timestamp::now(),
    };
    Effects {
        events: Vec::new(),
        tasks: vec![task],
    }
}
