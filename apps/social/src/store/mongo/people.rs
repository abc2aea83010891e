//! Users.

use mongodb::bson::{Bson, Document, doc};
use mongodb::options::ReturnDocument;
use serde_json::json;

use super::albums::removal;
use super::fault::fault;
use super::intents::{Change, Intent, Settled};
use super::records::Tombstone;
use super::tables::{Tables, delete, delete_all, find, page, records};
use crate::model::{Effects, Event, Id, User, UserChange, topic};
use crate::store::{Result, StoreError};

impl Tables {
    pub(super) async fn insert_user(&self, user: &User, effects: &Effects) -> Result<Vec<Event>> {
        let intent = Intent::new(Change::InsertUser, &user.id, user.id, effects);
        match self.make(&intent, user).await? {
            Settled::Done(events) => Ok(events),
            Settled::Rejected | Settled::Undone => Err(StoreError::Conflict("the name is taken")),
        }
    }

    pub(super) async fn user(&self, id: Id) -> Result<Option<User>> {
        let stored = find(&self.users, &id.to_string()).await?;
        let shown = stored.filter(|stored| !stored.removed);
        Ok(shown.map(|stored| stored.record))
    }

    pub(super) async fn user_by_name(&self, name: &str) -> Result<Option<User>> {
        let named = doc! { "record.name": name, "removed": false };
        let found = self.users.find_one(named).await;
        Ok(found.map_err(fault)?.map(|stored| stored.record))
    }

    pub(super) async fn users_by_email(&self, email: &str, limit: u32) -> Result<Vec<User>> {
        let filter = doc! { "record.email": email, "removed": false };
        let found = self.users.find(filter).sort(doc! { "_id": 1 });
        Ok(records(page(found, limit).await?))
    }

    pub(super) async fn users(&self, after: Option<Id>, limit: u32) -> Result<Vec<User>> {
        let mut filter = doc! { "removed": false };
        if let Some(id) = after {
            filter.insert("_id", doc! { "$gt": id.to_string() });
        }
        let found = self.users.find(filter).sort(doc! { "_id": 1 });
        Ok(records(page(found, limit).await?))
    }

    pub(super) async fn update_user(&self, id: Id, change: UserChange) -> Result<Option<User>> {
        self.update_user_if(id, doc! {}, change).await
    }

    /// Changes a user who meets the condition. Sessions of an earlier generation are invalid from
    /// this update on, deleted or not.
    pub(super) async fn update_user_if(
        &self,
        id: Id,
        condition: Document,
        change: UserChange,
    ) -> Result<Option<User>> {
        let ends_sessions = change.ends_sessions;
        let update = update(change);
        if update.is_empty() {
            return self.user(id).await;
        }
        let mut filter = doc! { "_id": id.to_string(), "removed": false };
        filter.extend(condition);
        let changed = self
            .users
            .find_one_and_update(filter, update)
            .return_document(ReturnDocument::After)
            .await;
        let changed = changed.map_err(fault)?;
        if ends_sessions && changed.is_some() {
            self.end_sessions(id).await?;
        }
        Ok(changed.map(|stored| stored.record))
    }

    async fn end_sessions(&self, id: Id) -> Result<()> {
        let of_user = doc! { "record.user": id.to_string() };
        delete_all(&self.pushes, of_user.clone()).await?;
        delete_all(&self.tickets, of_user.clone()).await?;
        delete_all(&self.sessions, of_user).await
    }

    pub(super) async fn delete_user(&self, id: Id) -> Result<bool> {
        if self.user(id).await?.is_none() {
            return Ok(false);
        }
        let effects = removal(format!("remove-user:{id}"), &json!({ "user": id }));
        let intent = Intent::new(Change::DeleteUser, &format!("user:{id}"), id, &effects);
        let settled = self.make(&intent, Tombstone::now()).await?;
        Ok(matches!(settled, Settled::Done(_)))
    }

    pub(super) async fn hide_user(&self, id: Id) -> Result<()> {
        let hide = doc! { "$set": { "removed": true } };
        let user = doc! { "_id": id.to_string() };
        self.users.update_one(user, hide).await.map_err(fault)?;
        delete_all(&self.keys, doc! { "record.user": id.to_string() }).await?;
        self.end_sessions(id).await
    }

    /// Purges a user. The record goes last, so that an interrupted purge is repeated.
    pub(super) async fn purge_user(&self, id: Id) -> Result<()> {
        let stored = find(&self.users, &id.to_string()).await?;
        if stored.is_none_or(|stored| !stored.removed) {
            return Ok(());
        }
        self.end_sessions(id).await?;
        self.delete_log(&topic::bell(id)).await?;
        delete(&self.users, &id.to_string()).await.map(drop)
    }
}

/// Returns the update; empty if nothing changes: the protocol rejects operators without fields.
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
    if let Some(email) = change.email {
        set.insert("record.email", email);
    }
    if let Some(wanted) = change.wanted_email {
        set.insert("record.wanted_email", wanted);
    }
    if let Some(password) = change.password {
        set.insert("record.password", password);
    }
    let mut update = Document::new();
    if change.ends_sessions {
        update.insert("$inc", doc! { "record.generation": 1_i64 });
    }
    if !set.is_empty() {
        update.insert("$set", set);
    }
    if let Some(seen) = change.bell_seen {
        let seen = i64::try_from(seen).unwrap_or(i64::MAX);
        update.insert("$max", doc! { "record.bell_seen": seen });
    }
    update
}
