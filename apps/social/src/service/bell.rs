use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::people::reach;
use crate::model::{
    Author, Effects, Event, Id, NewEvent, NewTask, Picture, TaskKind, UserChange, topic,
};
use crate::{App, Failure};

/// Most entries of the bell that are shown.
const BELL_ENTRIES: u32 = 30;

/// A user's notifications of what others did with their pictures.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
pub struct Bell {
    /// Number of entries that were not seen yet.
    pub unseen: u64,
    /// The position in the topic `/user/ID/bell` that this shows: watch it from here, and report it
    /// as seen up to here.
    pub seq: u64,
    /// The entries, the newest first; at most 30.
    pub entries: Vec<BellEntry>,
}

/// One notification.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
pub struct BellEntry {
    /// Its number in the topic.
    pub seq: u64,
    /// `like` or `comment`.
    pub kind: String,
    /// The name of the user who did it.
    pub by: String,
    /// The picture concerned.
    pub picture: Id,
    /// Time of the event.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
}

/// Returns a user's bell.
///
/// # Errors
/// Those of the storage; [`Failure::NotFound`] if the user is gone.
pub async fn bell(app: &App, user: Id) -> Result<Bell, Failure> {
    let user = app
        .store
        .user(user)
        .await?
        .ok_or(Failure::NotFound("user"))?;
    let events = app
        .store
        .last_events(&topic::bell(user.id), BELL_ENTRIES)
        .await?;
    let seq = events.last().map_or(0, |event| event.seq);
    Ok(Bell {
        unseen: seq.saturating_sub(user.bell_seen),
        seq,
        entries: events.into_iter().rev().filter_map(entry).collect(),
    })
}

/// Notes that a user has seen their bell up to a position in its topic, and returns the bell. A
/// position beyond the end counts as the end.
///
/// # Errors
/// Those of [`bell`].
pub async fn see_bell(app: &App, user: Id, seen: u64) -> Result<Bell, Failure> {
    let before = bell(app, user).await?;
    let change = UserChange {
        bell_seen: Some(seen.min(before.seq)),
        ..UserChange::default()
    };
    let user = app
        .store
        .update_user(user, change)
        .await?
        .ok_or(Failure::NotFound("user"))?;
    Ok(Bell {
        unseen: before.seq.saturating_sub(user.bell_seen),
        ..before
    })
}

fn entry(event: Event) -> Option<BellEntry> {
    #[derive(Deserialize)]
    struct Body {
        kind: String,
        by: String,
        picture: Id,
    }
    let Body { kind, by, picture } = serde_json::from_value(event.body).ok()?;
    Some(BellEntry {
        seq: event.seq,
        kind,
        by,
        picture,
        at: event.at,
    })
}

/// Returns the effects for a picture's owner of a user's action: the bell's event, and tasks for
/// notifications. There are none for the owner's own actions, and no tasks if the bell already has
/// an event of this key.
pub(super) async fn tell_owner(
    app: &App,
    by: &Author,
    picture: &Picture,
    kind: &str,
    action: &str,
) -> Result<Effects, Failure> {
    let owner = picture.owner.id;
    if owner == by.id {
        return Ok(Effects::default());
    }
    let bell = NewEvent {
        topic: topic::bell(owner),
        key: action.to_owned(),
        delta: 1,
        body: json!({"kind": kind, "by": by.name, "picture": picture.id}),
    };
    let reach = reach(app, owner).await?;
    let is_reached = reach.push || reach.webhook;
    // The outbox forgets its keys after days, the bell does not.
    if is_reached && app.store.has_event(&bell.topic, &bell.key).await? {
        return Ok(Effects::default());
    }
    let payload = json!({"user": owner, "kind": kind, "by": by.name, "picture": picture.id});
    let task = |kind: TaskKind| NewTask {
        key: format!("{kind}:{action}"),
        kind,
        payload: payload.clone(),
        due: Timestamp::now(),
    };
    let mut tasks = Vec::new();
    if reach.push {
        tasks.push(task(TaskKind::Push));
    }
    if reach.webhook {
        tasks.push(task(TaskKind::Webhook));
    }
    Ok(Effects {
        events: vec![bell],
        tasks,
    })
}
