//! The storage of the network: one trait, two implementations.
//!
//! Each method is one step: it is done as a whole or not at all, even if the process or the
//! database is killed in the middle of it, and when it has returned `Ok` it is durable. Effects,
//! where they are given, are part of that step.
//!
//! Timestamps are kept to the millisecond at least. An event is returned as it is stored.

mod error;
mod listed;
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
pub(crate) use listed::Listed;

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

/// The pictures that a page shows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PicturesOf {
    /// The timeline: everybody's.
    Everybody,
    /// Pictures of one album.
    Album(Id),
    /// Pictures of one user.
    Owner(Id),
}

/// The result of a like.
#[derive(Clone, Debug, PartialEq)]
pub struct LikeChange {
    /// True if the like was changed: liking twice is liking once.
    pub changed: bool,
    /// The effects' events that were written; empty if nothing changed.
    pub events: Vec<Event>,
    /// The end of the picture's topic of likes, after the change.
    pub likes: Head,
}

/// Returns the event that notifies open timelines of a deleted picture.
fn deleted_picture(id: Id) -> NewEvent {
    NewEvent {
        topic: topic::TIMELINE.to_owned(),
        key: format!("deleted:{id}"),
        delta: 0,
        body: json!({"deleted": id}),
    }
}

/// Returns the event that notifies open timelines of a deleted album.
fn deleted_album(id: Id) -> NewEvent {
    NewEvent {
        topic: topic::TIMELINE.to_owned(),
        key: format!("deleted-album:{id}"),
        delta: 0,
        body: json!({"deleted_album": id}),
    }
}

/// The body of an event about something that is deleted since.
const GONE: &str = r#"{"gone":true}"#;

/// Retention of data that is no longer needed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Retention {
    /// Events of a topic beyond this number may be deleted, the oldest first…
    pub events_max: u64,
    /// … if they are older than this.
    pub events_for: Duration,
    /// Retention of tasks, from when they are done or given up.
    pub tasks_for: Duration,
}

/// The storage of the network. All methods fail with [`StoreError`]; kinds beyond
/// [`Unavailable`](StoreError::Unavailable) and [`Broken`](StoreError::Broken) are named where they
/// occur.
#[async_trait]
pub trait Store: Debug + Send + Sync {
    /// Succeeds if the storage responds.
    async fn ping(&self) -> Result<()>;

    /// Adds a user. [`Conflict`](StoreError::Conflict) if the name is taken.
    async fn insert_user(&self, user: &User, effects: Effects) -> Result<Vec<Event>>;
    /// Returns the user of that identifier.
    async fn user(&self, id: Id) -> Result<Option<User>>;
    /// Returns the user of exactly that name.
    async fn user_by_name(&self, name: &str) -> Result<Option<User>>;
    /// Returns users in the order of their identifiers, those behind `after`.
    async fn users(&self, after: Option<Id>, limit: u32) -> Result<Vec<User>>;
    /// Returns users with exactly that address for mails.
    async fn users_by_email(&self, email: &str, limit: u32) -> Result<Vec<User>>;
    /// Changes a user and returns the new state; `None` if there is none of that identifier.
    async fn update_user(&self, id: Id, change: UserChange) -> Result<Option<User>>;
    /// Deletes a user; `false` if there was none. From then on no other method but
    /// [`purge_user`](Self::purge_user) finds them, their sessions, keys, tickets and browsers are
    /// gone, and a task of the kind [`TaskKind::Remove`] with the payload `{"user": id}` and the
    /// key `remove-user:ID` waits. Their comments and likes are still there, and their name is
    /// still taken.
    async fn delete_user(&self, id: Id) -> Result<bool>;
    /// Deletes the rest of a deleted user: their record, and the events of their bell. The name is
    /// free from then on. Does nothing to one that is not deleted.
    async fn purge_user(&self, id: Id) -> Result<()>;

    /// Adds a session.
    async fn insert_session(&self, session: &Session) -> Result<()>;
    /// Returns a session that has not expired at `now`.
    async fn session(&self, token_hash: &str, now: Timestamp) -> Result<Option<Session>>;
    /// Deletes a session, if there is one, and the browsers that subscribed by it.
    async fn delete_session(&self, token_hash: &str) -> Result<()>;
    /// Returns a session that is valid at `now`, and its user, who is not deleted and has not ended
    /// all sessions since.
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
    /// Returns a ticket that has not expired at `now`.
    async fn ticket(&self, token_hash: &str, now: Timestamp) -> Result<Option<Ticket>>;
    /// Uses a ticket up: changes its user, adds the tasks, and deletes the ticket. `None` if there
    /// is no such ticket, or no such user. If it fails, the ticket is there still; the tasks may be
    /// there, too, so whoever does them must see whether the change was made.
    async fn use_ticket(
        &self,
        ticket: &Ticket,
        change: UserChange,
        tasks: Vec<NewTask>,
    ) -> Result<Option<User>>;

    /// Adds a key.
    async fn insert_key(&self, key: &ApiKey) -> Result<()>;
    /// Returns the key of that identifier.
    async fn key(&self, id: Id) -> Result<Option<ApiKey>>;
    /// Returns a user's keys, the oldest first.
    async fn keys(&self, user: Id) -> Result<Vec<ApiKey>>;
    /// Deletes a key; `false` if the user has none of that identifier.
    async fn delete_key(&self, id: Id, user: Id) -> Result<bool>;
    /// Records the use of a nonce with a key; `false` if it had been used before. May be forgotten
    /// after `expires`.
    async fn use_nonce(&self, key: Id, nonce: &str, expires: Timestamp) -> Result<bool>;

    /// Adds an album.
    async fn insert_album(&self, album: &Album) -> Result<()>;
    /// Returns the album of that identifier.
    async fn album(&self, id: Id) -> Result<Option<Album>>;
    /// Returns a user's albums, the newest first.
    async fn albums(&self, owner: Id) -> Result<Vec<Album>>;
    /// Deletes an album, and returns the event for the timeline; `None` if there was none. From
    /// then on none of its pictures is found by any other method but
    /// [`removed_pictures`](Self::removed_pictures), and a task of the kind [`TaskKind::Remove`]
    /// with the payload `{"album": id}` and the key `remove-album:ID` waits. The pictures' likes,
    /// comments and events may still be found until they are [purged](Self::purge_picture).
    async fn delete_album(&self, id: Id) -> Result<Option<Vec<Event>>>;

    /// Adds pictures to their album, which is the same for all: all of them, or none.
    /// [`Conflict`](StoreError::Conflict) if the album is gone; then, or if this fails halfway, no
    /// picture stays behind.
    async fn insert_pictures(&self, pictures: &[Picture], effects: Effects) -> Result<Vec<Event>>;
    /// Returns the picture of that identifier.
    async fn picture(&self, id: Id) -> Result<Option<Picture>>;
    /// Returns pictures, the newest first, those before `before` (by identifier).
    async fn pictures(
        &self,
        of: PicturesOf,
        before: Option<Id>,
        limit: u32,
    ) -> Result<Vec<Picture>>;
    /// Deletes a picture, and returns the event for the timeline; `None` if there was none. As with
    /// [`delete_album`](Self::delete_album), but the payload is `{"picture": id}` and the key
    /// `remove-picture:ID`. The body of the event that announced it (on the timeline, with the
    /// picture's identifier as its key) is blanked: `{"gone": true}`.
    async fn delete_picture(&self, id: Id) -> Result<Option<Vec<Event>>>;
    /// Changes a picture's description, and returns the new state; `None` if there is none of that
    /// identifier.
    async fn set_alt(&self, id: Id, alt: &str) -> Result<Option<Picture>>;
    /// Returns the number and bytes of a user's pictures.
    async fn storage_used(&self, owner: Id) -> Result<StorageUsed>;
    /// Returns pictures of a deleted album whose records are still there.
    async fn removed_pictures(&self, album: Id, limit: u32) -> Result<Vec<Id>>;
    /// Deletes the rest of a deleted picture: its record, likes, comments, events. The body of the
    /// event that announced it is blanked, as with [`delete_picture`](Self::delete_picture). Does
    /// nothing to one that is not deleted.
    async fn purge_picture(&self, id: Id) -> Result<()>;

    /// Likes a picture for `user`, or takes the like back. [`Conflict`](StoreError::Conflict) if
    /// the picture is gone. The effects are stored only if this changes something.
    async fn set_like(
        &self,
        picture: Id,
        user: Id,
        liked: bool,
        effects: Effects,
    ) -> Result<LikeChange>;
    /// Returns those of `pictures` that the user likes.
    async fn liked(&self, user: Id, pictures: &[Id]) -> Result<Vec<Id>>;
    /// Returns the pictures that the user likes, those that are deleted and not yet purged as well,
    /// in the order of their identifiers, those behind `after`.
    async fn likes_by(&self, user: Id, after: Option<Id>, limit: u32) -> Result<Vec<Id>>;

    /// Adds a comment. [`Conflict`](StoreError::Conflict) if the picture is gone.
    async fn insert_comment(&self, comment: &Comment, effects: Effects) -> Result<Vec<Event>>;
    /// Returns the comment of that identifier.
    async fn comment(&self, id: Id) -> Result<Option<Comment>>;
    /// Returns a picture's comments, the oldest first, those behind `after` (by identifier).
    async fn comments(&self, picture: Id, after: Option<Id>, limit: u32) -> Result<Vec<Comment>>;
    /// Returns a user's comments on all pictures, the oldest first.
    async fn comments_by(&self, author: Id, limit: u32) -> Result<Vec<Comment>>;
    /// Deletes a comment; `None` if there was none, and then the effects are not stored. The body
    /// of the event that announced it (on the picture's topic of comments, with the comment's
    /// identifier as its key) is blanked: `{"gone": true}`.
    async fn delete_comment(&self, id: Id, effects: Effects) -> Result<Option<Vec<Event>>>;

    /// Returns events of a topic in their order, from the first behind number `after`. If the first
    /// one has not the number `after + 1`, those between are pruned.
    async fn events(&self, topic: &str, after: u64, limit: u32) -> Result<Vec<Event>>;
    /// Returns the last events of a topic, in their order.
    async fn last_events(&self, topic: &str, limit: u32) -> Result<Vec<Event>>;
    /// True if a topic has an event of that key.
    async fn has_event(&self, topic: &str, key: &str) -> Result<bool>;
    /// Returns topics and keys of events of bells whose bodies name a user, deleted or not, as the
    /// actor, in no particular order.
    async fn rings_by(&self, user: Id, limit: u32) -> Result<Vec<(String, String)>>;
    /// Blanks the body of an event, if there is one: `{"gone": true}`.
    async fn blank_event(&self, topic: &str, key: &str) -> Result<()>;
    /// Returns the ends of topics; topics without events are left out.
    async fn heads(&self, topics: &[String]) -> Result<HashMap<String, Head>>;

    /// Adds tasks to the outbox, but for those whose key it has or had.
    async fn add_tasks(&self, tasks: Vec<NewTask>) -> Result<()>;
    /// Claims up to `limit` tasks of a kind that are due, the longest due first. Until `now +
    /// lease` no other caller gets them; a task that is not settled by then must be abandoned. If
    /// it fails when some are claimed, these are returned.
    async fn claim_tasks(
        &self,
        kind: TaskKind,
        now: Timestamp,
        lease: Duration,
        limit: u32,
    ) -> Result<Vec<Task>>;
    /// Records the outcome of a claimed task. Does nothing if it has been claimed by another caller
    /// since.
    async fn settle_task(&self, task: &Task, outcome: Outcome) -> Result<()>;
    /// Returns the time at which the next task of a kind is due, of those that are neither done nor
    /// given up.
    async fn next_task(&self, kind: TaskKind) -> Result<Option<Timestamp>>;

    /// Adds a browser, or replaces the one of the same endpoint.
    async fn insert_push(&self, subscription: &PushSubscription) -> Result<()>;
    /// Returns a user's browsers.
    async fn pushes(&self, user: Id) -> Result<Vec<PushSubscription>>;
    /// Deletes a browser, if there is one.
    async fn delete_push(&self, endpoint: &str) -> Result<()>;

    /// Deletes what has expired: sessions, tickets, nonces, old events, finished tasks. At most
    /// 10,000 of each at a time; returns `true` if there may be more.
    ///
    /// This is the one method that is many steps: other changes come in between, and if it fails
    /// some of it is done.
    async fn prune(&self, now: Timestamp, retention: Retention) -> Result<bool>;
}
