//! A storage that is unavailable for a while.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use greenroom::bus::Bus;
use jiff::Timestamp;
use serde_json::json;
use social::config::FeedSettings;
use social::model::{
    Album, ApiKey, Comment, Effects, Event, Head, Id, NewTask, Outcome, Picture, PushSubscription,
    Session, StorageUsed, Task, TaskKind, Ticket, User, UserChange, topic,
};
use social::store::{LikeChange, PicturesOf, Result, Retention, Store, StoreError};
use tokio::sync::watch;

use super::client::ServerMessage;
use super::world::World;

/// The real storage, behind a switch.
#[derive(Debug)]
struct Switched {
    store: Arc<dyn Store>,
    is_away: AtomicBool,
    rejected: watch::Sender<u64>,
}

impl Switched {
    fn admit(&self) -> Result<()> {
        if self.is_away.load(Ordering::Relaxed) {
            self.rejected.send_modify(|rejected| *rejected += 1);
            return Err(StoreError::Unavailable("switched off".into()));
        }
        Ok(())
    }

    /// Waits until it has rejected so many operations.
    async fn has_rejected(&self, count: u64) {
        let mut rejected = self.rejected.subscribe();
        let enough = rejected.wait_for(|rejected| *rejected >= count).await;
        enough.expect("it is not dropped meanwhile");
    }
}

macro_rules! switched {
    ($($name:ident($($argument:ident: $of:ty),*) -> $output:ty;)*) => {
        #[async_trait]
        impl Store for Switched {
            $(async fn $name(&self, $($argument: $of),*) -> Result<$output> {
                self.admit()?;
                self.store.$name($($argument),*).await
            })*
        }
    };
}

switched! {
    ping() -> ();
    insert_user(user: &User, effects: Effects) -> Vec<Event>;
    user(id: Id) -> Option<User>;
    user_by_name(name: &str) -> Option<User>;
    users(after: Option<Id>, limit: u32) -> Vec<User>;
    users_by_email(email: &str, limit: u32) -> Vec<User>;
    update_user(id: Id, change: UserChange) -> Option<User>;
    delete_user(id: Id) -> bool;
    purge_user(id: Id) -> ();
    insert_session(session: &Session) -> ();
    session(token_hash: &str, now: Timestamp) -> Option<Session>;
    delete_session(token_hash: &str) -> ();
    insert_ticket(ticket: &Ticket) -> ();
    ticket(token_hash: &str, now: Timestamp) -> Option<Ticket>;
    use_ticket(ticket: &Ticket, change: UserChange, tasks: Vec<NewTask>) -> Option<User>;
    insert_key(key: &ApiKey) -> ();
    key(id: Id) -> Option<ApiKey>;
    keys(user: Id) -> Vec<ApiKey>;
    delete_key(id: Id, user: Id) -> bool;
    use_nonce(key: Id, nonce: &str, expires: Timestamp) -> bool;
    insert_album(album: &Album) -> ();
    album(id: Id) -> Option<Album>;
    albums(owner: Id) -> Vec<Album>;
    delete_album(id: Id) -> Option<Vec<Event>>;
    insert_pictures(pictures: &[Picture], effects: Effects) -> Vec<Event>;
    picture(id: Id) -> Option<Picture>;
    pictures(of: PicturesOf, before: Option<Id>, limit: u32) -> Vec<Picture>;
    delete_picture(id: Id) -> Option<Vec<Event>>;
    set_alt(id: Id, alt: &str) -> Option<Picture>;
    storage_used(owner: Id) -> StorageUsed;
    removed_pictures(album: Id, limit: u32) -> Vec<Id>;
    purge_picture(id: Id) -> ();
    set_like(picture: Id, user: Id, liked: bool, effects: Effects) -> LikeChange;
    liked(user: Id, pictures: &[Id]) -> Vec<Id>;
    likes_by(user: Id, after: Option<Id>, limit: u32) -> Vec<Id>;
    insert_comment(comment: &Comment, effects: Effects) -> Vec<Event>;
    comment(id: Id) -> Option<Comment>;
    comments(picture: Id, after: Option<Id>, limit: u32) -> Vec<Comment>;
    comments_by(author: Id, limit: u32) -> Vec<Comment>;
    delete_comment(id: Id, effects: Effects) -> Option<Vec<Event>>;
    events(topic: &str, after: u64, limit: u32) -> Vec<Event>;
    last_events(topic: &str, limit: u32) -> Vec<Event>;
    has_event(topic: &str, key: &str) -> bool;
    rings_by(user: Id, limit: u32) -> Vec<(String, String)>;
    blank_event(topic: &str, key: &str) -> ();
    heads(topics: &[String]) -> HashMap<String, Head>;
    add_tasks(tasks: Vec<NewTask>) -> ();
    claim_tasks(kind: TaskKind, now: Timestamp, lease: Duration, limit: u32) -> Vec<Task>;
    settle_task(task: &Task, outcome: Outcome) -> ();
    next_task(kind: TaskKind) -> Option<Timestamp>;
    insert_push(subscription: &PushSubscription) -> ();
    pushes(user: Id) -> Vec<PushSubscription>;
    delete_push(endpoint: &str) -> ();
    prune(now: Timestamp, retention: Retention) -> bool;
}

#[tokio::test]
async fn while_the_storage_is_away_nobody_is_told_anything_wrong() {
    let mut world = World::new().await;
    let switched = Arc::new(Switched {
        store: Arc::clone(&world.store),
        is_away: AtomicBool::new(false),
        rejected: watch::Sender::new(0),
    });
    world.store = Arc::clone(&switched) as Arc<dyn Store>;
    let settings = FeedSettings {
        check_every: Duration::from_millis(50),
        recent_max: 4,
        ..FeedSettings::default()
    };
    let replica = world.replica_with(&Bus::in_process(), settings).await;
    let mut present = replica.client().await;
    present.watch(topic::TIMELINE, None).await;
    replica.happen(topic::TIMELINE, 10).await;
    present.read_to(topic::TIMELINE, 10).await;

    switched.is_away.store(true, Ordering::Relaxed);
    let (mut behind, mut elsewhere) = (replica.client().await, replica.client().await);
    let likes = topic::likes(Id::new());
    behind.say(&json!({"watch": {topic::TIMELINE: 2}})).await;
    elsewhere.say(&json!({"watch": {&likes: null}})).await;
    switched.has_rejected(2).await;
    switched.is_away.store(false, Ordering::Relaxed);

    let received = behind.next_message().await;
    assert!(
        matches!(&received, ServerMessage::At(at) if at[topic::TIMELINE] == 2),
        "{received:?}"
    );
    behind.read_to(topic::TIMELINE, 10).await;
    let received = elsewhere.next_message().await;
    assert!(
        matches!(&received, ServerMessage::At(at) if at[&likes] == 0),
        "{received:?}"
    );
    replica.happen(topic::TIMELINE, 1).await;
    replica.happen(&likes, 1).await;
    present.read_to(topic::TIMELINE, 11).await;
    behind.read_to(topic::TIMELINE, 11).await;
    elsewhere.read_to(&likes, 1).await;
}
