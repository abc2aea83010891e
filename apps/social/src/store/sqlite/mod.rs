//! The embedded storage: one file, one process, one thread that writes.
//!
//! Writes wait in a bounded queue; those that wait together are committed together, with one
//! `fsync`, and return after it (`writer.rs`). Reads have connections of their own (`readers.rs`)
//! and see what was committed before they began. All of it runs on a stage, so that a slow disk
//! never blocks a loop.

mod access;
mod albums;
mod browsers;
mod comments;
mod database;
mod error;
mod likes;
mod log;
mod outbox;
mod pictures;
mod prune;
mod readers;
mod tickets;
mod users;
mod values;
mod writer;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use greenroom::Stage;
use jiff::Timestamp;
use rusqlite::Connection;

use super::{LikeChange, PicturesOf, Result, Retention, Store, StoreError};
use crate::model::{
    Album, ApiKey, Comment, Effects, Event, Head, Id, NewTask, Outcome, Picture, PushSubscription,
    Session, StorageUsed, Task, TaskKind, Ticket, User, UserChange,
};
use database::{Database, Lock};
use readers::{READERS_MAX, Readers};
use writer::Writer;

/// Opens the database at `path`, and creates it and its directory if need be. It is locked until
/// the storage is dropped, by a file beside it of the same name with `.lock` appended.
///
/// # Errors
/// [`Unavailable`](StoreError::Unavailable) if another process has it open, or the disk does not
/// give it; [`Broken`](StoreError::Broken) if it is no database, or of another program, or of a
/// newer version of this one.
pub async fn open(path: &Path) -> Result<Arc<dyn Store>> {
    let stage = Stage::builder(STAGE)
        .threads(THREADS..=THREADS)
        .blocking_threads_max(READERS_MAX + 1)
        .build()
        .map_err(StoreError::unavailable)?;
    let database = Database::at(path);
    let opened = stage.run(move || database.open_first()).await;
    let opened = opened.map_err(error::of_stage)??;
    Ok(Arc::new(Sqlite {
        readers: Readers::new(stage.clone(), opened.database.clone()),
        writer: Writer::start(&stage, opened.database, opened.connection),
        _lock: opened.lock,
    }))
}

/// The stage's name, in the status and in the names of threads.
const STAGE: &str = "sqlite";

/// Threads of the stage that compute at a time: one that writes, one that reads.
const THREADS: usize = 2;

/// Longest wait for an operation: a disk can stall for ever.
const OPERATION_MAX: Duration = Duration::from_secs(5);

#[derive(Debug)]
struct Sqlite {
    readers: Readers,
    writer: Writer,
    _lock: Lock,
}

impl Sqlite {
    async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.readers.read(query).await
    }

    async fn write<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.writer.write(operation).await
    }
}

#[async_trait]
impl Store for Sqlite {
    async fn ping(&self) -> Result<()> {
        self.read(database::touch).await
    }

    async fn insert_user(&self, user: &User, effects: Effects) -> Result<Vec<Event>> {
        let user = user.clone();
        self.write(move |db| users::insert_user(db, &user, effects))
            .await
    }

    async fn user(&self, id: Id) -> Result<Option<User>> {
        self.read(move |db| users::user(db, id)).await
    }

    async fn user_by_name(&self, name: &str) -> Result<Option<User>> {
        let name = name.to_owned();
        self.read(move |db| users::user_by_name(db, &name)).await
    }

    async fn users(&self, after: Option<Id>, limit: u32) -> Result<Vec<User>> {
        self.read(move |db| users::users(db, after, limit)).await
    }

    async fn users_by_email(&self, email: &str, limit: u32) -> Result<Vec<User>> {
        let email = email.to_owned();
        self.read(move |db| users::users_by_email(db, &email, limit))
            .await
    }

    async fn update_user(&self, id: Id, change: UserChange) -> Result<Option<User>> {
        self.write(move |db| users::update_user(db, id, &change))
            .await
    }

    async fn delete_user(&self, id: Id) -> Result<bool> {
        self.write(move |db| users::delete_user(db, id)).await
    }

    async fn purge_user(&self, id: Id) -> Result<()> {
        self.write(move |db| users::purge_user(db, id)).await
    }

    async fn insert_session(&self, session: &Session) -> Result<()> {
        let session = session.clone();
        self.write(move |db| access::insert_session(db, &session))
            .await
    }

    async fn session(&self, token_hash: &str, now: Timestamp) -> Result<Option<Session>> {
        let token_hash = token_hash.to_owned();
        self.read(move |db| access::session(db, &token_hash, now))
            .await
    }

    async fn delete_session(&self, token_hash: &str) -> Result<()> {
        let token_hash = token_hash.to_owned();
        self.write(move |db| access::delete_session(db, &token_hash))
            .await
    }

    async fn insert_ticket(&self, ticket: &Ticket) -> Result<()> {
        let ticket = ticket.clone();
        self.write(move |db| tickets::insert_ticket(db, &ticket))
            .await
    }

    async fn ticket(&self, token_hash: &str, now: Timestamp) -> Result<Option<Ticket>> {
        let token_hash = token_hash.to_owned();
        self.read(move |db| tickets::ticket(db, &token_hash, now))
            .await
    }

    async fn use_ticket(
        &self,
        ticket: &Ticket,
        change: UserChange,
        tasks: Vec<NewTask>,
    ) -> Result<Option<User>> {
        let ticket = ticket.clone();
        self.write(move |db| tickets::use_ticket(db, &ticket, &change, &tasks))
            .await
    }

    async fn insert_key(&self, key: &ApiKey) -> Result<()> {
        let key = key.clone();
        self.write(move |db| access::insert_key(db, &key)).await
    }

    async fn key(&self, id: Id) -> Result<Option<ApiKey>> {
        self.read(move |db| access::key(db, id)).await
    }

    async fn keys(&self, user: Id) -> Result<Vec<ApiKey>> {
        self.read(move |db| access::keys(db, user)).await
    }

    async fn delete_key(&self, id: Id, user: Id) -> Result<bool> {
        self.write(move |db| access::delete_key(db, id, user)).await
    }

    async fn use_nonce(&self, key: Id, nonce: &str, expires: Timestamp) -> Result<bool> {
        let nonce = nonce.to_owned();
        self.write(move |db| access::use_nonce(db, key, &nonce, expires))
            .await
    }

    async fn insert_album(&self, album: &Album) -> Result<()> {
        let album = album.clone();
        self.write(move |db| albums::insert_album(db, &album)).await
    }

    async fn album(&self, id: Id) -> Result<Option<Album>> {
        self.read(move |db| albums::album(db, id)).await
    }

    async fn albums(&self, owner: Id) -> Result<Vec<Album>> {
        self.read(move |db| albums::albums(db, owner)).await
    }

    async fn delete_album(&self, id: Id) -> Result<Option<Vec<Event>>> {
        self.write(move |db| albums::delete_album(db, id)).await
    }

    async fn insert_pictures(&self, pictures: &[Picture], effects: Effects) -> Result<Vec<Event>> {
        let pictures = pictures.to_vec();
        self.write(move |db| pictures::insert_pictures(db, &pictures, effects))
            .await
    }

    async fn picture(&self, id: Id) -> Result<Option<Picture>> {
        self.read(move |db| pictures::picture(db, id)).await
    }

    async fn pictures(
        &self,
        of: PicturesOf,
        before: Option<Id>,
        limit: u32,
    ) -> Result<Vec<Picture>> {
        self.read(move |db| pictures::pictures(db, of, before, limit))
            .await
    }

    async fn delete_picture(&self, id: Id) -> Result<Option<Vec<Event>>> {
        self.write(move |db| pictures::delete_picture(db, id)).await
    }

    async fn set_alt(&self, id: Id, alt: &str) -> Result<Option<Picture>> {
        let alt = alt.to_owned();
        self.write(move |db| pictures::set_alt(db, id, &alt)).await
    }

    async fn storage_used(&self, owner: Id) -> Result<StorageUsed> {
        self.read(move |db| pictures::storage_used(db, owner)).await
    }

    async fn removed_pictures(&self, album: Id, limit: u32) -> Result<Vec<Id>> {
        self.read(move |db| pictures::removed_pictures(db, album, limit))
            .await
    }

    async fn purge_picture(&self, id: Id) -> Result<()> {
        self.write(move |db| pictures::purge_picture(db, id)).await
    }

    async fn set_like(
        &self,
        picture: Id,
        user: Id,
        liked: bool,
        effects: Effects,
    ) -> Result<LikeChange> {
        self.write(move |db| likes::set_like(db, picture, user, liked, effects))
            .await
    }

    async fn liked(&self, user: Id, pictures: &[Id]) -> Result<Vec<Id>> {
        let pictures = pictures.to_vec();
        self.read(move |db| likes::liked(db, user, &pictures)).await
    }

    async fn likes_by(&self, user: Id, after: Option<Id>, limit: u32) -> Result<Vec<Id>> {
        self.read(move |db| likes::likes_by(db, user, after, limit))
            .await
    }

    async fn insert_comment(&self, comment: &Comment, effects: Effects) -> Result<Vec<Event>> {
        let comment = comment.clone();
        self.write(move |db| comments::insert_comment(db, &comment, effects))
            .await
    }

    async fn comment(&self, id: Id) -> Result<Option<Comment>> {
        self.read(move |db| comments::comment(db, id)).await
    }

    async fn comments(&self, picture: Id, after: Option<Id>, limit: u32) -> Result<Vec<Comment>> {
        self.read(move |db| comments::comments(db, picture, after, limit))
            .await
    }

    async fn comments_by(&self, author: Id, limit: u32) -> Result<Vec<Comment>> {
        self.read(move |db| comments::comments_by(db, author, limit))
            .await
    }

    async fn delete_comment(&self, id: Id, effects: Effects) -> Result<Option<Vec<Event>>> {
        self.write(move |db| comments::delete_comment(db, id, effects))
            .await
    }

    async fn events(&self, topic: &str, after: u64, limit: u32) -> Result<Vec<Event>> {
        let topic = topic.to_owned();
        self.read(move |db| log::events(db, &topic, after, limit))
            .await
    }

    async fn last_events(&self, topic: &str, limit: u32) -> Result<Vec<Event>> {
        let topic = topic.to_owned();
        self.read(move |db| log::last_events(db, &topic, limit))
            .await
    }

    async fn has_event(&self, topic: &str, key: &str) -> Result<bool> {
        let (topic, key) = (topic.to_owned(), key.to_owned());
        self.read(move |db| log::has(db, &topic, &key)).await
    }

    async fn rings_by(&self, user: Id, limit: u32) -> Result<Vec<(String, String)>> {
        self.read(move |db| log::rings_by(db, user, limit)).await
    }

    async fn blank_event(&self, topic: &str, key: &str) -> Result<()> {
        let (topic, key) = (topic.to_owned(), key.to_owned());
        self.write(move |db| log::blank(db, &topic, &key)).await
    }

    async fn heads(&self, topics: &[String]) -> Result<HashMap<String, Head>> {
        let topics = topics.to_vec();
        self.read(move |db| log::heads(db, topics)).await
    }

    async fn add_tasks(&self, tasks: Vec<NewTask>) -> Result<()> {
        self.write(move |db| outbox::add(db, &tasks)).await
    }

    async fn claim_tasks(
        &self,
        kind: TaskKind,
        now: Timestamp,
        lease: Duration,
        limit: u32,
    ) -> Result<Vec<Task>> {
        self.write(move |db| outbox::claim(db, kind, now, lease, limit))
            .await
    }

    async fn settle_task(&self, task: &Task, outcome: Outcome) -> Result<()> {
        let (key, attempts) = (task.key.clone(), task.attempts);
        self.write(move |db| outbox::settle(db, &key, attempts, &outcome))
            .await
    }

    async fn next_task(&self, kind: TaskKind) -> Result<Option<Timestamp>> {
        self.read(move |db| outbox::next(db, kind)).await
    }

    async fn insert_push(&self, subscription: &PushSubscription) -> Result<()> {
        let subscription = subscription.clone();
        self.write(move |db| browsers::insert_push(db, &subscription))
            .await
    }

    async fn pushes(&self, user: Id) -> Result<Vec<PushSubscription>> {
        self.read(move |db| browsers::pushes(db, user)).await
    }

    async fn delete_push(&self, endpoint: &str) -> Result<()> {
        let endpoint = endpoint.to_owned();
        self.write(move |db| browsers::delete_push(db, &endpoint))
            .await
    }

    async fn prune(&self, now: Timestamp, retention: Retention) -> Result<bool> {
        prune::prune(self, now, retention).await
    }
}
