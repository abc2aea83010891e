//! Things to store.

use std::slice;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use social::model::{
    Album, Comment, Effects, Event, Id, Media, NewEvent, NewTask, Picture, Task, TaskKind, User,
    topic,
};
use social::store::{Retention, Store, StoreError};

/// A retention that keeps nothing.
pub(crate) const NOTHING: Retention = Retention {
    events_max: 0,
    events_for: Duration::ZERO,
    tasks_for: Duration::ZERO,
};

/// Returns this moment, in the precision of every storage.
pub(crate) fn now() -> Timestamp {
    millisecond(Timestamp::now().as_millisecond())
}

/// Returns the time so many seconds from now.
pub(crate) fn in_seconds(seconds: i64) -> Timestamp {
    millisecond(Timestamp::now().as_millisecond() + seconds * 1_000)
}

fn millisecond(millisecond: i64) -> Timestamp {
    Timestamp::from_millisecond(millisecond).expect("the tests live in a time that there is")
}

pub(crate) fn user(name: &str) -> User {
    User {
        id: Id::new(),
        name: name.to_owned(),
        display: format!("{name} of the tests"),
        email: format!("{name}@example.org"),
        wanted_email: None,
        about: "äöü 🦆 'quoted'".to_owned(),
        password: "$argon2id$v=19$m=1,t=1,p=1$c2FsdHNhbHQ$aGFzaA".to_owned(),
        webhook: Some("https://example.org/hook?of=a".parse().expect("a URL")),
        digest: true,
        bell_seen: 0,
        joined_at: now(),
        generation: 0,
    }
}

pub(crate) fn album(owner: &User) -> Album {
    Album {
        id: Id::new(),
        owner: owner.author(),
        title: "Ducks".to_owned(),
        created_at: now(),
    }
}

pub(crate) fn picture(album: &Album) -> Picture {
    Picture {
        id: Id::new(),
        album: album.id,
        owner: album.owner.clone(),
        caption: "A duck".to_owned(),
        alt: "A mallard".to_owned(),
        media: Media::Webp,
        width: 4_000,
        height: 3_000,
        bytes: 5_000_000_000,
        created_at: now(),
    }
}

pub(crate) fn comment(picture: Id, author: &User, text: &str) -> Comment {
    Comment {
        id: Id::new(),
        picture,
        author: author.author(),
        text: text.to_owned(),
        created_at: now(),
    }
}

pub(crate) fn event(topic: &str, key: &str, delta: i64) -> NewEvent {
    NewEvent {
        topic: topic.to_owned(),
        key: key.to_owned(),
        delta,
        body: json!({ "key": key }),
    }
}

pub(crate) fn events(events: Vec<NewEvent>) -> Effects {
    Effects {
        events,
        tasks: Vec::new(),
    }
}

pub(crate) fn task(key: &str, kind: TaskKind, due: Timestamp) -> NewTask {
    NewTask {
        key: key.to_owned(),
        kind,
        payload: json!({ "key": key, "list": [1, null, "ü"] }),
        due,
    }
}

/// Returns the effects that the service stores with a like: an event for the picture, one for its
/// owner, a notification.
pub(crate) fn like_effects(picture: &Picture, liked: bool) -> Effects {
    let key = Id::new().to_string();
    let delta = if liked { 1 } else { -1 };
    Effects {
        events: vec![
            event(&topic::likes(picture.id), &key, delta),
            event(&topic::bell(picture.owner.id), &key, 1),
        ],
        tasks: vec![task(&format!("push:{key}"), TaskKind::Push, now())],
    }
}

/// Adds a user who has an album with one picture.
pub(crate) async fn insert_picture(store: &dyn Store) -> (User, Album, Picture) {
    let owner = insert_user(store, "owner").await;
    let album = insert_album(store, &owner).await;
    let picture = insert_picture_of(store, &album).await;
    (owner, album, picture)
}

pub(crate) async fn insert_user(store: &dyn Store, name: &str) -> User {
    let user = user(name);
    let inserted = store.insert_user(&user, Effects::default()).await;
    inserted.expect("the name is free");
    user
}

pub(crate) async fn insert_album(store: &dyn Store, owner: &User) -> Album {
    let album = album(owner);
    store
        .insert_album(&album)
        .await
        .expect("an album can be added");
    album
}

pub(crate) async fn insert_picture_of(store: &dyn Store, album: &Album) -> Picture {
    let picture = picture(album);
    let inserted = store
        .insert_pictures(slice::from_ref(&picture), Effects::default())
        .await;
    inserted.expect("the album is there");
    picture
}

/// Writes events with a change that can be repeated: another user signs up.
pub(crate) async fn write(store: &dyn Store, new: Vec<NewEvent>) -> Vec<Event> {
    let user = user(&Id::new().to_string());
    let written = store.insert_user(&user, events(new)).await;
    written.expect("the name is free")
}

pub(crate) async fn claim(store: &dyn Store, kind: TaskKind, now: Timestamp) -> Vec<Task> {
    let claimed = store
        .claim_tasks(kind, now, Duration::from_mins(1), 100)
        .await;
    claimed.expect("tasks can be claimed")
}

pub(crate) fn keys(tasks: &[Task]) -> Vec<&str> {
    tasks.iter().map(|task| task.key.as_str()).collect()
}

pub(crate) fn seqs(events: &[Event]) -> Vec<u64> {
    events.iter().map(|event| event.seq).collect()
}

pub(crate) fn is_conflict<T>(result: &Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::Conflict(_)))
}
