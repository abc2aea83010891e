//! The collections, their indexes, and the operations on them.

use std::time::Duration;

use futures_util::TryStreamExt;
use mongodb::action::Find;
use mongodb::bson::{Document, doc};
use mongodb::options::IndexOptions;
use mongodb::{Collection, Database, IndexModel};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::appending::Queues;
use super::fault::{fault, is_duplicate};
use super::intents::Intent;
use super::likes::Chains;
use super::records::{Expiring, Hint, Stored, StoredEvent, StoredTask, Toggle, Tombstone};
use crate::model::{Album, ApiKey, Comment, Picture, PushSubscription, Session, Ticket, User};
use crate::store::{Result, StoreError};

/// The names of the collections that intents can be about.
pub(super) mod name {
    pub(in super::super) const COMMENTS: &str = "comments";
    pub(in super::super) const LIKES: &str = "likes";
    pub(in super::super) const PICTURES: &str = "pictures";
    pub(in super::super) const TOMBSTONES: &str = "tombstones";
    pub(in super::super) const USERS: &str = "users";
}

/// The collections, and all operations on them.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) database: Database,
    /// Longest time of an operation of the store, with all its steps.
    pub(super) operation_max: Duration,
    pub(super) albums: Collection<Stored<Album>>,
    pub(super) claims: Collection<Expiring<()>>,
    pub(super) comments: Collection<Stored<Comment>>,
    pub(super) events: Collection<StoredEvent>,
    pub(super) hints: Collection<Hint>,
    pub(super) intents: Collection<Intent>,
    pub(super) keys: Collection<Stored<ApiKey>>,
    pub(super) likes: Collection<Stored<Toggle>>,
    pub(super) nonces: Collection<Expiring<()>>,
    pub(super) pictures: Collection<Stored<Picture>>,
    pub(super) pushes: Collection<Stored<PushSubscription>>,
    pub(super) sessions: Collection<Expiring<Session>>,
    pub(super) tasks: Collection<StoredTask>,
    pub(super) tickets: Collection<Expiring<Ticket>>,
    pub(super) tombstones: Collection<Stored<Tombstone>>,
    pub(super) users: Collection<Stored<User>>,
    pub(super) chains: Chains,
    pub(super) queues: Queues,
}

impl Tables {
    pub(super) fn new(database: &Database, operation_max: Duration) -> Self {
        Self {
            database: database.clone(),
            operation_max,
            albums: database.collection("albums"),
            claims: database.collection("claims"),
            comments: database.collection(name::COMMENTS),
            events: database.collection("events"),
            hints: database.collection("hints"),
            intents: database.collection("intents"),
            keys: database.collection("keys"),
            likes: database.collection(name::LIKES),
            nonces: database.collection("nonces"),
            pictures: database.collection(name::PICTURES),
            pushes: database.collection("pushes"),
            sessions: database.collection("sessions"),
            tasks: database.collection("tasks"),
            tickets: database.collection("tickets"),
            tombstones: database.collection(name::TOMBSTONES),
            users: database.collection(name::USERS),
            chains: Chains::default(),
            queues: Queues::default(),
        }
    }

    /// Runs the work, or fails when its time is over.
    pub(super) async fn within<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::time::timeout(self.operation_max, work)
            .await
            .unwrap_or_else(|elapsed| Err(StoreError::unavailable(elapsed)))
    }

    pub(super) async fn ping(&self) -> Result<()> {
        let pong = self.database.run_command(doc! { "ping": 1 }).await;
        pong.map(drop).map_err(fault)
    }

    /// Creates the indexes; existing ones stay as they are.
    pub(super) async fn create_indexes(&self) -> Result<()> {
        unique(&self.users, doc! { "record.name": 1 }).await?;
        unique(&self.events, doc! { "topic": 1, "key": 1 }).await?;
        index(&self.events, doc! { "body": 1 }).await?;
        index(&self.albums, doc! { "record.owner.id": 1, "_id": -1 }).await?;
        index(&self.claims, doc! { "expires": 1 }).await?;
        index(&self.comments, doc! { "record.picture": 1, "_id": 1 }).await?;
        index(&self.comments, doc! { "record.author.id": 1, "_id": 1 }).await?;
        index(&self.hints, doc! { "seq": 1 }).await?;
        index(&self.keys, doc! { "record.user": 1, "_id": 1 }).await?;
        let toggles = doc! { "record.user": 1, "record.picture": 1, "record.number": -1 };
        index(&self.likes, toggles).await?;
        index(&self.likes, doc! { "record.picture": 1 }).await?;
        index(&self.nonces, doc! { "expires": 1 }).await?;
        index(&self.pictures, doc! { "removed": 1, "_id": -1 }).await?;
        let of_album = doc! { "record.album": 1, "removed": 1, "_id": -1 };
        index(&self.pictures, of_album).await?;
        let of_owner = doc! { "record.owner.id": 1, "removed": 1, "_id": -1 };
        index(&self.pictures, of_owner).await?;
        let bytes = doc! { "record.owner.id": 1, "removed": 1, "record.bytes": 1 };
        index(&self.pictures, bytes).await?;
        index(&self.pushes, doc! { "record.user": 1 }).await?;
        index(&self.pushes, doc! { "record.session": 1 }).await?;
        index(&self.sessions, doc! { "expires": 1 }).await?;
        index(&self.sessions, doc! { "record.user": 1 }).await?;
        index(&self.tasks, doc! { "kind": 1, "state": 1, "due": 1 }).await?;
        index(&self.tasks, doc! { "finished_at": 1 }).await?;
        index(&self.tickets, doc! { "expires": 1 }).await?;
        index(&self.tickets, doc! { "record.user": 1 }).await?;
        index(&self.tombstones, doc! { "record.at": 1 }).await?;
        index(&self.users, doc! { "record.email": 1, "_id": 1 }).await
    }
}

async fn unique<T: Send + Sync>(collection: &Collection<T>, keys: Document) -> Result<()> {
    let options = IndexOptions::builder().unique(true).build();
    let model = IndexModel::builder().keys(keys).options(options).build();
    let created = collection.create_index(model).await;
    created.map(drop).map_err(fault)
}

async fn index<T: Send + Sync>(collection: &Collection<T>, keys: Document) -> Result<()> {
    let model = IndexModel::builder().keys(keys).build();
    let created = collection.create_index(model).await;
    created.map(drop).map_err(fault)
}

/// Inserts a document; `false` if a unique key of it is taken. Of several concurrent inserts of the
/// same key, one succeeds.
pub(super) async fn insert<T>(collection: &Collection<T>, document: &T) -> Result<bool>
where
    T: Serialize + Send + Sync,
{
    match collection.insert_one(document).await {
        Ok(_) => Ok(true),
        Err(error) if is_duplicate(&error) => Ok(false),
        Err(error) => Err(fault(error)),
    }
}

pub(super) async fn find<T>(collection: &Collection<T>, id: &str) -> Result<Option<T>>
where
    T: DeserializeOwned + Send + Sync,
{
    collection.find_one(doc! { "_id": id }).await.map_err(fault)
}

/// Deletes a document; `false` if there was none. Of several concurrent calls for the same one, one
/// gets `true`.
pub(super) async fn delete<T>(collection: &Collection<T>, id: &str) -> Result<bool>
where
    T: Send + Sync,
{
    let deleted = collection
        .delete_one(doc! { "_id": id })
        .await
        .map_err(fault)?;
    Ok(deleted.deleted_count == 1)
}

pub(super) async fn delete_all<T>(collection: &Collection<T>, filter: Document) -> Result<()>
where
    T: Send + Sync,
{
    let deleted = collection.delete_many(filter).await;
    deleted.map(drop).map_err(fault)
}

pub(super) async fn all<T>(found: Find<'_, T>) -> Result<Vec<T>>
where
    T: DeserializeOwned + Send + Sync,
{
    let cursor = found.await.map_err(fault)?;
    cursor.try_collect().await.map_err(fault)
}

/// Returns at most `limit` documents; the protocol takes 0 for no limit.
pub(super) async fn page<T>(found: Find<'_, T>, limit: u32) -> Result<Vec<T>>
where
    T: DeserializeOwned + Send + Sync,
{
    if limit == 0 {
        return Ok(Vec::new());
    }
    all(found.limit(limit.into())).await
}

/// Returns the records without the store's notes.
pub(super) fn records<T>(stored: Vec<Stored<T>>) -> Vec<T> {
    stored.into_iter().map(|stored| stored.record).collect()
}
