use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Comment, Id, NewTask};

/// Something that has happened, as the log of its topic keeps it and clients get it.
///
/// The numbers of a topic begin with 1 and have no gaps: who has seen number 7 and gets number 9 has missed
/// exactly one. An event is written in the same step as the change that it tells of.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Event {
    /// Such as `/picture/0198…/likes`: see [`topic`].
    pub topic: String,
    /// The place in the topic's log, from 1.
    pub seq: u64,
    /// The sum of all [deltas](NewEvent::delta) up to this event: how many likes there are.
    pub total: i64,
    /// When it was written.
    pub at: Timestamp,
    /// What happened; its shape depends on the topic. `{"gone": true}` if what it told of was deleted since.
    pub body: Value,
}

/// An event that is to be written; the log gives it its number.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    /// See [`Event::topic`].
    pub topic: String,
    /// Unique within the topic. An event of a key that the log has is not written again, so writing
    /// can be repeated after a crash.
    pub key: String,
    /// What it adds to the topic's total: 1 for a like, −1 for its end.
    pub delta: i64,
    /// See [`Event::body`].
    pub body: Value,
}

impl NewEvent {
    /// Somebody likes a picture, or does no longer. Who it is stands there as an identifier, which says nothing of anybody once
    /// the user is gone.
    #[must_use]
    pub fn like(picture: Id, by: Id, liked: bool) -> Self {
        Self {
            topic: topic::likes(picture),
            key: Id::new().to_string(),
            delta: if liked { 1 } else { -1 },
            body: json!({"by": by, "liked": liked}),
        }
    }

    /// A comment is deleted.
    #[must_use]
    pub fn comment_deleted(comment: &Comment) -> Self {
        let id = comment.id;
        Self {
            topic: topic::comments(comment.picture),
            key: format!("deleted:{id}"),
            delta: -1,
            body: json!({"deleted": id}),
        }
    }

    /// The key by which a bell tells of a like: the same each time, so that it rings once for whoever likes a picture again
    /// and again.
    #[must_use]
    pub fn key_of_like(picture: Id, user: Id) -> String {
        format!("like:{picture}:{user}")
    }
}

/// The end of a topic's log. A topic without events has 0 and 0.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Head {
    /// Of the last event.
    pub seq: u64,
    /// Of the last event.
    pub total: i64,
}

/// What follows from a change, and is stored with it in one step: either both are there or neither.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effects {
    /// For the live feed.
    pub events: Vec<NewEvent>,
    /// For the outbox.
    pub tasks: Vec<NewTask>,
}

/// The names of topics.
pub mod topic {
    use crate::model::Id;

    /// Pictures of everybody: bodies are `{"picture": …}` of a new one, `{"deleted": id}` of one that is gone, and
    /// `{"deleted_album": id}` of all those of an album. The total is the number of pictures that ever came.
    pub const TIMELINE: &str = "/timeline";

    /// Likes of a picture; bodies say `{"by": id of the user, "liked": bool}`. The total is the number of likes.
    #[must_use]
    pub fn likes(picture: Id) -> String {
        format!("/picture/{picture}/likes")
    }

    /// Comments on a picture; bodies are `{"comment": …}` or `{"deleted": id}`. The total is their number.
    #[must_use]
    pub fn comments(picture: Id) -> String {
        format!("/picture/{picture}/comments")
    }

    /// The names of all bells lie between these.
    pub const BELLS: [&str; 2] = ["/user/", "/user0"];

    /// What others did with somebody's pictures; only for that user. Bodies say
    /// `{"kind": "like" | "comment", "by": name, "picture": id}`.
    #[must_use]
    pub fn bell(user: Id) -> String {
        format!("/user/{user}/bell")
    }
}
