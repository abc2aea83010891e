//! Users.

use mongodb::bson::{Bson, Document, doc};
use mongodb::options::ReturnDocument;

use super::fault::fault;
use super::intents::{Change, Intent, Settled};
use super::tables::{Tables, find, page, records};
use crate::model::{Effects, Event, Id, User, UserChange};
use crate::store::{Result, StoreError};

impl Tables {
    pub(super) async fn insert_user(&self, user: &User, effects: &Effects) -> Result<Vec<Event>> {
        let intent = Intent::new(Change::InsertUser, &user.id, user.id, effects);
        match self.make(&intent, user).await? {
            Settled::Done(events) => Ok(events),
            Settled::Refused | Settled::TakenBack => Err(StoreError::Conflict("the name is taken")),
        }
    }

    pub(super) async fn user(&self, id: Id) -> Result<Option<User>> {
        let stored = find(&self.users, &id.to_string()).await?;
        Ok(stored.map(|stored| stored.record))
    }

    pub(super) async fn user_by_name(&self, name: &str) -> Result<Option<User>> {
        let found = self.users.find_one(doc! { "record.name": name }).await;
        Ok(found.map_err(fault)?.map(|stored| stored.record))
    }

    pub(super) async fn users(&self, after: Option<Id>, limit: u32) -> Result<Vec<User>> {
        let filter = after.map_or_else(
            Document::new,
            |id| doc! { "_id": { "$gt": id.to_string() } },
        );
        let found = self.users.find(filter).sort(doc! { "_id": 1 });
        Ok(records(page(found, limit).await?))
    }

    pub(super) async fn update_user(&self, id: Id, change: UserChange) -> Result<Option<User>> {
        let update = update(change);
        if update.is_empty() {
            return self.user(id).await;
        }
        let changed = self
            .users
            .find_one_and_update(doc! { "_id": id.to_string() }, update)
            .return_document(ReturnDocument::After)
            .await;
        Ok(changed.map_err(fault)?.map(|stored| stored.record))
    }
}

/// Empty if nothing changes: the protocol refuses operators without fields.
fn update(change: UserChange) -> Document {
    let mut set = Document::new();
    if let Some(display) = change.display {
        set.insert("record.display", display);
    }
    if let Some(about) = change.about {
        set.insert("record.about", about);
    }
    if let Some(webhook) = change.webhook {
        set.insert(
            "record.webhook",
            webhook.map_or(Bson::Null, |url| Bson::String(url.into())),
        );
    }
    if let Some(digest) = change.digest {
        set.insert("record.digest", digest);
    }
    let mut update = Document::new();
    if !set.is_empty() {
        update.insert("$set", set);
    }
    if let Some(seen) = change.bell_seen {
        let seen = i64::try_from(seen).unwrap_or(i64::MAX);
        update.insert("$max", doc! { "record.bell_seen": seen });
    }
    update
}
