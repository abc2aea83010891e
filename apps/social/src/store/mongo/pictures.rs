//! Pictures.

use mongodb::bson::doc;
use serde_json::json;

use super::albums::removal;
use super::fault::fault;
use super::intents::{Change, Intent, Settled};
use super::records::Tombstone;
use super::tables::{Tables, delete, delete_all, find, page, records};
use crate::model::{Effects, Event, Id, Picture, topic};
use crate::store::{PicturesOf, Result, StoreError};

impl Tables {
    pub(super) async fn insert_picture(
        &self,
        picture: &Picture,
        effects: &Effects,
    ) -> Result<Vec<Event>> {
        let gone = || StoreError::Conflict("the album is gone");
        if self.album(picture.album).await?.is_none() {
            return Err(gone());
        }
        let intent = Intent::new(Change::InsertPicture, &picture.id, picture.album, effects);
        match self.make(&intent, picture).await? {
            Settled::Done(events) => Ok(events),
            Settled::Refused => Err(StoreError::Conflict(
                "there is a picture of this identifier",
            )),
            Settled::TakenBack => Err(gone()),
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

    pub(super) async fn delete_picture(&self, id: Id) -> Result<bool> {
        if self.picture(id).await?.is_none() {
            return Ok(false);
        }
        let intent = Intent::new(Change::DeletePicture, &tombstone(id), id, &removal_of(id));
        let settled = self.make(&intent, Tombstone::now()).await?;
        Ok(matches!(settled, Settled::Done(_)))
    }

    pub(super) async fn hide_picture(&self, id: Id) -> Result<()> {
        let picture = doc! { "_id": id.to_string() };
        let hide = doc! { "$set": { "removed": true } };
        let hidden = self.pictures.update_one(picture, hide).await;
        hidden.map_err(fault)?;
        self.blank_event(topic::TIMELINE, &id.to_string()).await
    }

    /// Its uploader was told that it failed.
    pub(super) async fn remove_unfinished(&self, id: &str) -> Result<()> {
        let id = id.parse().map_err(StoreError::broken)?;
        self.hide_picture(id).await?;
        self.add_tasks(&removal_of(id).tasks).await
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

    /// The record goes last, so that this is done again if it was not done to its end.
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

fn removal_of(id: Id) -> Effects {
    removal(format!("remove-picture:{id}"), &json!({ "picture": id }))
}

fn tombstone(id: Id) -> String {
    format!("picture:{id}")
}
