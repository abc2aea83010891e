//! Where everything is kept: one trait, two adaptors.
//!
//! Each method is one step: it is done as a whole or not at all, also when the process or the database is killed
//! in the midst of it, and when it has returned `Ok` it is durable. Where `effects` are given they are
//! part of that step.
//!
//! Points in time are kept to the millisecond at least. An event is answered as it is kept.

mod error;
pub mod mongo;
pub mod sqlite;

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::json;

use crate::config::StoreSettings;
use crate::model::{
    Album, ApiKey, Comment, Effects, Event, Head, Id, NewEvent, NewTask, Outcome, Picture,
    PushSubscription, Session, StorageUsed, Task, TaskKind, Ticket, User, UserChange, topic,
};
pub use error::{Result, StoreError};

/// Opens the storage that the settings name.
///
/// # Errors
/// If it cannot be opened or reached, or is of a newer version than this program.
pub async fn open(settings: &StoreSettings) -> Result<Arc<dyn Store>> {
    match settings {
        StoreSettings::Mongo(url) => mongo::open(url).await,
        StoreSettings::Sqlite(path) => sqlite::open(path).await,
    }
}

/// Which pictures a page shows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PicturesOf {
    /// The timeline.
    Everybody,
    /// One album's.
    Album(Id),
    /// All that a user has uploaded.
    Owner(Id),
}

/// What became of a like.
#[derive(Clone, Debug, PartialEq)]
pub struct LikeChange {
    /// Whether there was anything to change: to like twice is to like once.
    pub changed: bool,
    /// Those of the effects' events that were written; empty if nothing changed.
    pub events: Vec<Event>,
    /// The end of the picture's topic of likes, after the change.
    pub likes: Head,
}

/// Tells open timelines that a picture is gone.
fn deleted_picture(id: Id) -> NewEvent {
    NewEvent {
        topic: topic::TIMELINE.to_owned(),
        key: format!("deleted:{id}"),
        delta: 0,
        body: json!({"deleted": id}),
    }
}

/// Tells open timelines that all pictures of an album are gone.
fn deleted_album(id: Id) -> NewEvent {
    NewEvent {
        topic: topic::TIMELINE.to_owned(),
        key: format!("deleted-album:{id}"),
        delta: 0,
        body: json!({"deleted_album": id}),
    }
}

/// The body of an event that told of something which is deleted.
const GONE: &str = r#"{"gone":true}"#;

/// How long is kept what nobody needs any more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Retention {
    /// Events of a topic beyond this many may go, the oldest first…
    pub events_max: u64,
    /// … if they are older than this.
    pub events_for: Duration,
    /// Tasks that are done or given up, counted from then.
    pub tasks_for: Duration,
}

/// The storage of the network. All methods fail with [`StoreError`]; which kinds beyond
/// [`Unavailable`](StoreError::Unavailable) and [`Broken`](StoreError::Broken) is said where they do.
#[async_trait]
pub trait Store: Debug + Send + Sync {
    /// Answers if the storage does.
    async fn ping(&self) -> Result<()>;

    /// Adds a user. [`Conflict`](StoreError::Conflict) if the name is taken.
    async fn insert_user(&self, user: &User, effects: Effects) -> Result<Vec<Event>>;
    /// The user of that identifier.
    async fn user(&self, id: Id) -> Result<Option<User>>;
    /// The user of exactly that name.
    async fn user_by_name(&self, name: &str) -> Result<Option<User>>;
    /// Users in the order of their identifiers, those behind `after`.
    async fn users(&self, after: Option<Id>, limit: u32) -> Result<Vec<User>>;
    /// Users to whom mails go at exactly that address.
    async fn users_by_email(&self, email: &str, limit: u32) -> Result<Vec<User>>;
    /// Changes a user and gives the new state; `None` if there is none of that identifier.
    async fn update_user(&self, id: Id, change: UserChange) -> Result<Option<User>>;
    /// Deletes a user; `false` if there was none. From then on no other method but [`purge_user`](Self::purge_user) finds
    /// them, their sessions, keys, tickets and browsers are gone, and a task of the kind [`TaskKind::Remove`] with the payload
    /// `{"user": id}` and the key `remove-user:ID` waits. What they have made is still there, and their name is still taken.
    async fn delete_user(&self, id: Id) -> Result<bool>;
    /// Deletes what is left of a deleted user: their record, and the events of their bell. The name is free from then on.
    /// Does nothing to one that is not deleted.
    async fn purge_user(&self, id: Id) -> Result<()>;

    /// Adds a session.
    async fn insert_session(&self, session: &Session) -> Result<()>;
    /// A session that has not expired at `now`.
    async fn session(&self, token_hash: &str, now: Timestamp) -> Result<Option<Session>>;
    /// Deletes a session, if there is one, and the browsers that subscribed by it.
    async fn delete_session(&self, token_hash: &str) -> Result<()>;
    /// A session that holds at `now`, and its user: they are not deleted, and have not ended all sessions since.
    async fn live_session(
        &self,
        token_hash: &str,
        now: Timestamp,
    ) -> Result<Option<(Session, User)>> {
        let Some(session) = self.session(token_hash, now).await? else {
            return Ok(None);
        };
        let user = self.user(session.user).await?;
        let user = user.filter(|user| user.generation == session.generation);
        Ok(user.map(|user| (session, user)))
    }

    /// Adds a ticket.
    async fn insert_ticket(&self, ticket: &Ticket) -> Result<()>;
    /// A ticket that has not expired at `now`.
    async fn ticket(&self, token_hash: &str, now: Timestamp) -> Result<Option<Ticket>>;
    /// Deletes a ticket; `false` if there was none. Of several at once that delete the same one, one is told `true`.
    async fn delete_ticket(&self, token_hash: &str) -> Result<bool>;

    /// Adds a key.
    async fn insert_key(&self, key: &ApiKey) -> Result<()>;
    /// The key of that identifier.
    async fn key(&self, id: Id) -> Result<Option<ApiKey>>;
    /// A user's keys, the oldest first.
    async fn keys(&self, user: Id) -> Result<Vec<ApiKey>>;
    /// Deletes a key; `false` if the user has none of that identifier.
    async fn delete_key(&self, id: Id, user: Id) -> Result<bool>;
    /// Notes that a nonce was used with a key; `false` if it had been used before. May be forgotten after `expires`.
    async fn use_nonce(&self, key: Id, nonce: &str, expires: Timestamp) -> Result<bool>;

    /// Adds an album.
    async fn insert_album(&self, album: &Album) -> Result<()>;
    /// The album of that identifier.
    async fn album(&self, id: Id) -> Result<Option<Album>>;
    /// A user's albums, the newest first.
    async fn albums(&self, owner: Id) -> Result<Vec<Album>>;
    /// Deletes an album, and gives the event that tells of it on the timeline; `None` if there was none. From then on none of its pictures is found by any other
    /// method but [`removed_pictures`](Self::removed_pictures), and a task of the kind [`TaskKind::Remove`]
    /// with the payload `{"album": id}` and the key `remove-album:ID` waits. The pictures' likes, comments and events may still be found until they are
    /// [purged](Self::purge_picture).
    async fn delete_album(&self, id: Id) -> Result<Option<Vec<Event>>>;

    /// Adds a picture to its album. [`Conflict`](StoreError::Conflict) if the album is gone; then, or if this
    /// fails in the midst, no picture stays behind.
    async fn insert_picture(&self, picture: &Picture, effects: Effects) -> Result<Vec<Event>>;
    /// The picture of that identifier.
    async fn picture(&self, id: Id) -> Result<Option<Picture>>;
    /// The newest first, those before `before` (by identifier).
    async fn pictures(
        &self,
        of: PicturesOf,
        before: Option<Id>,
        limit: u32,
    ) -> Result<Vec<Picture>>;
    /// Deletes a picture, and gives the event that tells of it on the timeline; `None` if there was none. As with [`delete_album`](Self::delete_album), but the payload is
    /// `{"picture": id}` and the key `remove-picture:ID`. The body of the event that told of it (on the timeline, with the picture's
    /// identifier as its key) is blanked: `{"gone": true}`.
    async fn delete_picture(&self, id: Id) -> Result<Option<Vec<Event>>>;
    /// Changes what a picture is said to show, and gives the new state; `None` if there is none of that identifier.
    async fn set_alt(&self, id: Id, alt: &str) -> Result<Option<Picture>>;
    /// What the pictures of a user take.
    async fn storage_used(&self, owner: Id) -> Result<StorageUsed>;
    /// Pictures of a deleted album whose records are still there.
    async fn removed_pictures(&self, album: Id, limit: u32) -> Result<Vec<Id>>;
    /// Deletes what is left of a deleted picture: its record, likes, comments, events. The body of the event that told
    /// of it is blanked, as with [`delete_picture`](Self::delete_picture). Does nothing to one that is not deleted.
    async fn purge_picture(&self, id: Id) -> Result<()>;

    /// Makes `user` like a picture, or no longer. [`Conflict`](StoreError::Conflict) if the picture is gone. The
    /// effects are stored only if this changes something.
    async fn set_like(
        &self,
        picture: Id,
        user: Id,
        liked: bool,
        effects: Effects,
    ) -> Result<LikeChange>;
    /// Those of `pictures` that the user likes.
    async fn liked(&self, user: Id, pictures: &[Id]) -> Result<Vec<Id>>;
    /// Pictures that the user likes, in whatever order.
    async fn likes_by(&self, user: Id, limit: u32) -> Result<Vec<Id>>;

    /// Adds a comment. [`Conflict`](StoreError::Conflict) if the picture is gone.
    async fn insert_comment(&self, comment: &Comment, effects: Effects) -> Result<Vec<Event>>;
    /// The comment of that identifier.
    async fn comment(&self, id: Id) -> Result<Option<Comment>>;
    /// A picture's comments, the oldest first, those behind `after` (by identifier).
    async fn comments(&self, picture: Id, after: Option<Id>, limit: u32) -> Result<Vec<Comment>>;
    /// Comments of a user, on whatever picture, the oldest first.
    async fn comments_by(&self, author: Id, limit: u32) -> Result<Vec<Comment>>;
    /// Deletes a comment; `None` if there was none, and then the effects are not stored. The body of the event that told of
    /// it (on the picture's topic of comments, with the comment's identifier as its key) is blanked: `{"gone": true}`.
    async fn delete_comment(&self, id: Id, effects: Effects) -> Result<Option<Vec<Event>>>;

    /// Events of a topic in their order, from the first behind number `after`. If the first one has not the number `after + 1`, those
    /// between are pruned.
    async fn events(&self, topic: &str, after: u64, limit: u32) -> Result<Vec<Event>>;
    /// The last events of a topic, in their order.
    async fn last_events(&self, topic: &str, limit: u32) -> Result<Vec<Event>>;
    /// Whether a topic has an event of that key.
    async fn has_event(&self, topic: &str, key: &str) -> Result<bool>;
    /// Events of bells whose bodies name a user, deleted or not, as the one who has done something: topics and keys, in whatever order.
    async fn rings_by(&self, user: Id, limit: u32) -> Result<Vec<(String, String)>>;
    /// Blanks the body of an event, if there is one: `{"gone": true}`.
    async fn blank_event(&self, topic: &str, key: &str) -> Result<()>;
    /// The ends of topics; topics without events are left out.
    async fn heads(&self, topics: &[String]) -> Result<HashMap<String, Head>>;

    /// Adds tasks to the outbox, but for those whose key it has or had.
    async fn add_tasks(&self, tasks: Vec<NewTask>) -> Result<()>;
    /// Takes up to `limit` tasks of a kind that are due, the longest due first. Until `now + lease` nobody else gets them; who
    /// has not settled a task by then must not go on with it.
    async fn claim_tasks(
        &self,
        kind: TaskKind,
        now: Timestamp,
        lease: Duration,
        limit: u32,
    ) -> Result<Vec<Task>>;
    /// Notes what a claimed task came to. Does nothing if somebody else has claimed it since.
    async fn settle_task(&self, task: &Task, outcome: Outcome) -> Result<()>;
    /// When the next task of a kind is due, of those that are neither done nor given up.
    async fn next_task(&self, kind: TaskKind) -> Result<Option<Timestamp>>;

    /// Adds a browser, or replaces the one of the same endpoint.
    async fn insert_push(&self, subscription: &PushSubscription) -> Result<()>;
    /// A user's browsers.
    async fn pushes(&self, user: Id) -> Result<Vec<PushSubscription>>;
    /// Deletes a browser, if there is one.
    async fn delete_push(&self, endpoint: &str) -> Result<()>;

    /// Forgets what has expired: sessions, tickets, nonces, old events, finished tasks. At most 10,000 of each at a time;
    /// gives whether there may be more.
    /// This is the one method that is many steps: others' changes come in between, and if it fails some of it is done.
    async fn prune(&self, now: Timestamp, retention: Retention) -> Result<bool>;
}
