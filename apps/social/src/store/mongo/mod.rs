//! The storage that replicas share: a database that speaks `MongoDB`'s protocol.
//!
//! There are no transactions here, and not even updates are trusted: `FerretDB` reads, changes and
//! writes a document in steps, so of two conditional updates at once both may succeed. Two
//! operations are atomic everywhere: to insert a document whose identifier is unique, and to
//! delete one. All that must happen once depends on these two:
//!
//! - **A change and its effects.** First an *intent* is inserted, which holds the effects. Then the
//!   *primary* document is inserted, which names the intent: this is the moment in which the change
//!   happens. Then the effects are written, each under a unique key, and the intent is deleted.
//!   A process that finds an abandoned intent looks for the primary document: if it is there, the
//!   effects are written; if not, nothing has happened.
//! - **Nothing but a mark is ever changed in a primary document.** To delete is to insert a
//!   tombstone; a like and its end are numbered toggles. So each change is the insertion of a
//!   primary document of its own.
//! - **A change that builds on another finishes that one first**, so effects are in the order of
//!   their changes.
//! - **The place of an event in its log** is its identifier, and so is the number of a task's
//!   claim: the one that inserts it owns it.
//!
//! An upload is the exception: its pictures, of which each is a primary document, are removed if
//! their writer did not finish, since their uploader got an error. So all of them stay or none.
//!
//! A picture's description is an update too. One that hides the picture may be lost beside it, so
//! the writer of a description looks for a tombstone afterwards.
//!
//! The profile of a user is changed by one update. `MongoDB` does this atomically; with `FerretDB`,
//! one of two changes to the same user in the same millisecond can be lost.
//!
//! A ticket is deleted after the change that it allows, so a failure in between does not use it up.
//! One that is left behind is good for nothing new: a password that was set by it has begun another
//! generation, and an address that it has confirmed is the same once more.

mod access;
mod albums;
mod appending;
mod comments;
mod connection;
mod fault;
mod intents;
mod likes;
mod log;
mod outbox;
mod people;
mod pictures;
mod pruning;
mod records;
mod sweeper;
mod tables;
mod tickets;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use url::Url;

use super::{LikeChange, PicturesOf, Result, Retention, Store};
use crate::model::{
    Album, ApiKey, Comment, Effects, Event, Head, Id, NewTask, Outcome, Picture, PushSubscription,
    Session, StorageUsed, Task, TaskKind, Ticket, User, UserChange,
};
use sweeper::Sweeper;
use tables::Tables;

/// Connects to the database at `url`, makes its indexes, and settles changes abandoned by crashed
/// writers, on the runtime of the caller, until the store is dropped.
///
/// Each operation ends within 5 seconds, or within `timeoutMS` of the URL, which must be the same
/// for all replicas.
///
/// # Errors
/// [`Unavailable`](super::StoreError::Unavailable) if no server responds, or if it rejects the
/// indexes; [`Broken`](super::StoreError::Broken) if the URL means nothing to the driver.
pub async fn open(url: &Url) -> Result<Arc<dyn Store>> {
    let tables = Arc::new(connection::open(url).await?);
    tables.within(tables.create_indexes()).await?;
    let sweeper = Sweeper::start(Arc::clone(&tables));
    Ok(Arc::new(Mongo {
        tables,
        _sweeper: sweeper,
    }))
}

#[derive(Debug)]
struct Mongo {
    tables: Arc<Tables>,
    _sweeper: Sweeper,
}

#[async_trait]
impl Store for Mongo {
    async fn ping(&self) -> Result<()> {
        self.tables.within(self.tables.ping()).await
    }

    async fn insert_user(&self, user: &User, effects: Effects) -> Result<Vec<Event>> {
        self.tables
            .within(self.tables.insert_user(user, &effects))
            .await
    }

    async fn user(&self, id: Id) -> Result<Option<User>> {
        self.tables.within(self.tables.user(id)).await
    }

    async fn user_by_name(&self, name: &str) -> Result<Option<User>> {
        self.tables.within(self.tables.user_by_name(name)).await
    }

    async fn users(&self, after: Option<Id>, limit: u32) -> Result<Vec<User>> {
        self.tables.within(self.tables.users(after, limit)).await
    }

    async fn users_by_email(&self, email: &str, limit: u32) -> Result<Vec<User>> {
        self.tables
            .within(self.tables.users_by_email(email, limit))
            .await
    }

    async fn update_user(&self, id: Id, change: UserChange) -> Result<Option<User>> {
        self.tables
            .within(self.tables.update_user(id, change))
            .await
    }

    async fn delete_user(&self, id: Id) -> Result<bool> {
        self.tables.within(self.tables.delete_user(id)).await
    }

    async fn purge_user(&self, id: Id) -> Result<()> {
        self.tables.within(self.tables.purge_user(id)).await
    }

    async fn insert_session(&self, session: &Session) -> Result<()> {
        self.tables
            .within(self.tables.insert_session(session))
            .await
    }

    async fn session(&self, token_hash: &str, now: Timestamp) -> Result<Option<Session>> {
        self.tables
            .within(self.tables.session(token_hash, now))
            .await
    }

    async fn delete_session(&self, token_hash: &str) -> Result<()> {
        self.tables
            .within(self.tables.delete_session(token_hash))
            .await
    }

    async fn insert_ticket(&self, ticket: &Ticket) -> Result<()> {
        self.tables.within(self.tables.insert_ticket(ticket)).await
    }

    async fn ticket(&self, token_hash: &str, now: Timestamp) -> Result<Option<Ticket>> {
        self.tables
            .within(self.tables.ticket(token_hash, now))
            .await
    }

    async fn use_ticket(
        &self,
        ticket: &Ticket,
        change: UserChange,
        tasks: Vec<NewTask>,
    ) -> Result<Option<User>> {
        self.tables
            .within(self.tables.use_ticket(ticket, change, &tasks))
            .await
    }

    async fn insert_key(&self, key: &ApiKey) -> Result<()> {
        self.tables.within(self.tables.insert_key(key)).await
    }

    async fn key(&self, id: Id) -> Result<Option<ApiKey>> {
        self.tables.within(self.tables.key(id)).await
    }

    async fn keys(&self, user: Id) -> Result<Vec<ApiKey>> {
        self.tables.within(self.tables.keys(user)).await
    }

    async fn delete_key(&self, id: Id, user: Id) -> Result<bool> {
        self.tables.within(self.tables.delete_key(id, user)).await
    }

    async fn use_nonce(&self, key: Id, nonce: &str, expires: Timestamp) -> Result<bool> {
        self.tables
            .within(self.tables.use_nonce(key, nonce, expires))
            .await
    }

    async fn insert_album(&self, album: &Album) -> Result<()> {
        self.tables.within(self.tables.insert_album(album)).await
    }

    async fn album(&self, id: Id) -> Result<Option<Album>> {
        self.tables.within(self.tables.album(id)).await
    }

    async fn albums(&self, owner: Id) -> Result<Vec<Album>> {
        self.tables.within(self.tables.albums(owner)).await
    }

    async fn delete_album(&self, id: Id) -> Result<Option<Vec<Event>>> {
        self.tables.within(self.tables.delete_album(id)).await
    }

    async fn insert_pictures(&self, pictures: &[Picture], effects: Effects) -> Result<Vec<Event>> {
        self.tables
            .within(self.tables.insert_pictures(pictures, &effects))
            .await
    }

    async fn picture(&self, id: Id) -> Result<Option<Picture>> {
        self.tables.within(self.tables.picture(id)).await
    }

    async fn pictures(
        &self,
        of: PicturesOf,
        before: Option<Id>,
        limit: u32,
    ) -> Result<Vec<Picture>> {
        self.tables
            .within(self.tables.pictures(of, before, limit))
            .await
    }

    async fn delete_picture(&self, id: Id) -> Result<Option<Vec<Event>>> {
        self.tables.within(self.tables.delete_picture(id)).await
    }

    async fn set_alt(&self, id: Id, alt: &str) -> Result<Option<Picture>> {
        self.tables.within(self.tables.set_alt(id, alt)).await
    }

    async fn storage_used(&self, owner: Id) -> Result<StorageUsed> {
        self.tables.within(self.tables.storage_used(owner)).await
    }

    async fn removed_pictures(&self, album: Id, limit: u32) -> Result<Vec<Id>> {
        self.tables
            .within(self.tables.removed_pictures(album, limit))
            .await
    }

    async fn purge_picture(&self, id: Id) -> Result<()> {
        self.tables.within(self.tables.purge_picture(id)).await
    }

    async fn set_like(
        &self,
        picture: Id,
        user: Id,
        liked: bool,
        effects: Effects,
    ) -> Result<LikeChange> {
        self.tables
            .within(self.tables.set_like(picture, user, liked, &effects))
            .await
    }

    async fn liked(&self, user: Id, pictures: &[Id]) -> Result<Vec<Id>> {
        self.tables.within(self.tables.liked(user, pictures)).await
    }

    async fn likes_by(&self, user: Id, after: Option<Id>, limit: u32) -> Result<Vec<Id>> {
        let likes = self.tables.likes_by(user, after, limit);
        self.tables.within(likes).await
    }

    async fn insert_comment(&self, comment: &Comment, effects: Effects) -> Result<Vec<Event>> {
        self.tables
            .within(self.tables.insert_comment(comment, &effects))
            .await
    }

    async fn comment(&self, id: Id) -> Result<Option<Comment>> {
        self.tables.within(self.tables.comment(id)).await
    }

    async fn comments(&self, picture: Id, after: Option<Id>, limit: u32) -> Result<Vec<Comment>> {
        self.tables
            .within(self.tables.comments(picture, after, limit))
            .await
    }

    async fn comments_by(&self, author: Id, limit: u32) -> Result<Vec<Comment>> {
        self.tables
            .within(self.tables.comments_by(author, limit))
            .await
    }

    async fn delete_comment(&self, id: Id, effects: Effects) -> Result<Option<Vec<Event>>> {
        self.tables
            .within(self.tables.delete_comment(id, &effects))
            .await
    }

    async fn events(&self, topic: &str, after: u64, limit: u32) -> Result<Vec<Event>> {
        self.tables
            .within(self.tables.events(topic, after, limit))
            .await
    }

    async fn last_events(&self, topic: &str, limit: u32) -> Result<Vec<Event>> {
        self.tables
            .within(self.tables.last_events(topic, limit))
            .await
    }

    async fn has_event(&self, topic: &str, key: &str) -> Result<bool> {
        self.tables.within(self.tables.has_event(topic, key)).await
    }

    async fn rings_by(&self, user: Id, limit: u32) -> Result<Vec<(String, String)>> {
        self.tables.within(self.tables.rings_by(user, limit)).await
    }

    async fn blank_event(&self, topic: &str, key: &str) -> Result<()> {
        self.tables
            .within(self.tables.blank_event(topic, key))
            .await
    }

    async fn heads(&self, topics: &[String]) -> Result<HashMap<String, Head>> {
        self.tables.within(self.tables.heads(topics)).await
    }

    async fn add_tasks(&self, tasks: Vec<NewTask>) -> Result<()> {
        self.tables.within(self.tables.add_tasks(&tasks)).await
    }

    async fn claim_tasks(
        &self,
        kind: TaskKind,
        now: Timestamp,
        lease: Duration,
        limit: u32,
    ) -> Result<Vec<Task>> {
        self.tables.claim_tasks(kind, now, lease, limit).await
    }

    async fn settle_task(&self, task: &Task, outcome: Outcome) -> Result<()> {
        self.tables
            .within(self.tables.settle_task(task, outcome))
            .await
    }

    async fn next_task(&self, kind: TaskKind) -> Result<Option<Timestamp>> {
        self.tables.within(self.tables.next_task(kind)).await
    }

    async fn insert_push(&self, subscription: &PushSubscription) -> Result<()> {
        self.tables
            .within(self.tables.insert_push(subscription))
            .await
    }

    async fn pushes(&self, user: Id) -> Result<Vec<PushSubscription>> {
        self.tables.within(self.tables.pushes(user)).await
    }

    async fn delete_push(&self, endpoint: &str) -> Result<()> {
        self.tables.within(self.tables.delete_push(endpoint)).await
    }

    async fn prune(&self, now: Timestamp, retention: Retention) -> Result<bool> {
        self.tables.prune(now, retention).await
    }
}
