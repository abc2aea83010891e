//! Pictures.

use std::iter;

use futures_util::TryStreamExt;
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::ReturnDocument;
use serde_json::json;

use super::albums::removal;
use super::fault::fault;
use super::intents::{Change, Intent, Settled};
use super::records::Tombstone;
use super::tables::{Tables, all, delete, delete_all, find, name, page, records};
use crate::model::{Effects, Event, Id, Picture, StorageUsed, topic};
use crate::store::{PicturesOf, Result, StoreError, deleted_picture};

impl Tables {
    pub(super) async fn insert_pictures(
        &self,
        pictures: &[Picture],
        effects: &Effects,
    ) -> Result<Vec<Event>> {
        let Some((first, others)) = pictures.split_first() else {
            return Ok(Vec::new());
        };
        let gone = || StoreError::Conflict("the album is gone");
        if self.album(first.album).await?.is_none() {
            return Err(gone());
        }
        let mut intent = Intent::new(Change::InsertPicture, &first.id, first.album, effects);
        intent.others = others.iter().map(|other| other.id.to_string()).collect();
        match self.make_pictures(&intent, pictures).await? {
            Settled::Done(events) => Ok(events),
            Settled::Rejected => Err(StoreError::Conflict(
                "there is a picture of this identifier",
            )),
            Settled::Undone => Err(gone()),
        }
    }

    pub(super) async fn picture(&self, id: Id) -> Result<Option<Picture>> {
        let stored = find(&self.pictures, &id.to_string()).await?;
        let shown = stored.filter(|stored| !stored.removed);
        Ok(shown.map(|stored| stored.record))
    }

    pub(super) async fn pictures(
        &self,
        of: PicturesOf,
        before: Option<Id>,
        limit: u32,
    ) -> Result<Vec<Picture>> {
        let mut filter = match of {
            PicturesOf::Everybody => doc! {},
            PicturesOf::Album(album) => doc! { "record.album": album.to_string() },
            PicturesOf::Owner(owner) => doc! { "record.owner.id": owner.to_string() },
        };
        filter.insert("removed", false);
        if let Some(id) = before {
            filter.insert("_id", doc! { "$lt": id.to_string() });
        }
        let found = self.pictures.find(filter).sort(doc! { "_id": -1 });
        Ok(records(page(found, limit).await?))
    }

    pub(super) async fn delete_picture(&self, id: Id) -> Result<Option<Vec<Event>>> {
        if self.picture(id).await?.is_none() {
            return Ok(None);
        }
        let effects = Effects {
            events: vec![deleted_picture(id)],
            ..removal_of(id)
        };
        let intent = Intent::new(Change::DeletePicture, &tombstone(id), id, &effects);
        match self.make(&intent, Tombstone::now()).await? {
            Settled::Done(events) => Ok(Some(events)),
            Settled::Rejected | Settled::Undone => Ok(None),
        }
    }

    pub(super) async fn set_alt(&self, id: Id, alt: &str) -> Result<Option<Picture>> {
        let shown = doc! { "_id": id.to_string(), "removed": false };
        let changed = self
            .pictures
            .find_one_and_update(shown, doc! { "$set": { "record.alt": alt } })
            .return_document(ReturnDocument::After)
            .await;
        let Some(picture) = changed.map_err(fault)?.map(|stored| stored.record) else {
            return Ok(None);
        };
        let tombstone = find(&self.tombstones, &tombstone(id)).await?;
        if tombstone.is_some() || self.is_album_deleted(picture.album).await? {
            self.hide_picture(id).await?;
            return Ok(None);
        }
        Ok(Some(picture))
    }

    pub(super) async fn storage_used(&self, owner: Id) -> Result<StorageUsed> {
        let of_owner = doc! { "record.owner.id": owner.to_string(), "removed": false };
        // Summed here: `FerretDB` cannot sum a field within a record.
        let pictures = self.database.collection::<Document>(name::PICTURES);
        // Without the `_id`, so that an index has all of it.
        let only_bytes = doc! { "_id": 0, "record.bytes": 1 };
        let found = pictures.find(of_owner).projection(only_bytes).await;
        let mut found = found.map_err(fault)?;
        let mut used = StorageUsed::default();
        while let Some(picture) = found.try_next().await.map_err(fault)? {
            used.pictures += 1;
            used.bytes += bytes(&picture)?;
        }
        Ok(used)
    }

    pub(super) async fn hide_picture(&self, id: Id) -> Result<()> {
        let picture = doc! { "_id": id.to_string() };
        let hide = doc! { "$set": { "removed": true } };
        let hidden = self.pictures.update_one(picture, hide).await;
        hidden.map_err(fault)?;
        self.blank_event(topic::TIMELINE, &id.to_string()).await
    }

    /// Removes what is there of an upload that was reported as failed; returns the number of
    /// pictures.
    pub(super) async fn remove_unfinished(&self, intent: &Intent) -> Result<usize> {
        let ids = iter::once(&intent.primary).chain(&intent.others);
        let ids: Vec<_> = ids.map(String::as_str).collect();
        // Another upload may have inserted a picture of the same identifier.
        let made = doc! { "_id": { "$in": ids }, "intent": &intent.id };
        let made = all(self.pictures.find(made)).await?;
        for stored in &made {
            let id = stored.record.id;
            self.hide_picture(id).await?;
            self.add_tasks(&removal_of(id).tasks).await?;
        }
        Ok(made.len())
    }

    pub(super) async fn removed_pictures(&self, album: Id, limit: u32) -> Result<Vec<Id>> {
        if self.album(album).await?.is_some() {
            return Ok(Vec::new());
        }
        let filter = doc! { "record.album": album.to_string(), "removed": true };
        let found = self.pictures.find(filter).sort(doc! { "_id": 1 });
        let pictures = page(found, limit).await?;
        Ok(pictures.iter().map(|stored| stored.record.id).collect())
    }

    /// Purges a picture. The record goes last, so that an interrupted purge is repeated.
    pub(super) async fn purge_picture(&self, id: Id) -> Result<()> {
        let text = id.to_string();
        let stored = find(&self.pictures, &text).await?;
        if stored.is_none_or(|stored| !stored.removed) {
            return Ok(());
        }
        let of_picture = doc! { "record.picture": &text };
        delete_all(&self.likes, of_picture.clone()).await?;
        delete_all(&self.comments, of_picture).await?;
        for topic in [topic::likes(id), topic::comments(id)] {
            self.delete_log(&topic).await?;
        }
        self.blank_event(topic::TIMELINE, &text).await?;
        delete(&self.pictures, &text).await.map(drop)
    }
}

/// Reads a number in any type in which it may be stored.
fn bytes(picture: &Document) -> Result<u64> {
    let record = picture.get_document("record").map_err(StoreError::broken)?;
    let bytes = match record.get("bytes") {
        Some(Bson::Int32(bytes)) => i64::from(*bytes),
        Some(Bson::Int64(bytes)) => *bytes,
        other => return Err(StoreError::broken(format!("no number of bytes: {other:?}"))),
    };
    u64::try_from(bytes).map_err(StoreError::broken)
}

fn removal_of(id: Id) -> Effects {
    removal(format!("remove-picture:{id}"), &json!({ "picture": id }))
}

fn tombstone(id: Id) -> String {
    format!("picture:{id}")
}
