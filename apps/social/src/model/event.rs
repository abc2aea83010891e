use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Comment, Id, NewTask};

/// An event, as the log of its topic stores it and clients get it.
///
/// The numbers of a topic begin with 1 and have no gaps: a client that has number 7 and gets number
/// 9 has missed exactly one. An event is written in the same step as the change that it reports.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Event {
    /// The topic, such as `/picture/0198…/likes`: see [`topic`].
    pub topic: String,
    /// The place in the topic's log, from 1.
    pub seq: u64,
    /// The sum of all [deltas](NewEvent::delta) up to this event, such as the number of likes.
    pub total: i64,
    /// The time at which it was written.
    pub at: Timestamp,
    /// The content, whose shape depends on the topic. `{"gone": true}` if its subject has been
    /// deleted since.
    pub body: Value,
}

/// An event to write; the log gives it its number.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    /// See [`Event::topic`].
    pub topic: String,
    /// The key, unique within the topic. An event whose key the log has is not written again, so
    /// writing can be repeated after a crash.
    pub key: String,
    /// The change of the topic's total: 1 for a like, −1 for its end.
    pub delta: i64,
    /// See [`Event::body`].
    pub body: Value,
}

impl NewEvent {
    /// Creates the event of a like, or of its end. The user is given by identifier, which says
    /// nothing of anybody once the user is gone.
    #[must_use]
    pub fn like(picture: Id, by: Id, liked: bool) -> Self {
        Self {
            topic: topic::likes(picture),
            key: Id::new().to_string(),
            delta: if liked { 1 } else { -1 },
            body: json!({"by": by, "liked": liked}),
        }
    }

    /// Creates the event of a deleted comment.
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

    /// Returns the key of a like in the owner's bell: the same each time, so that it rings once for
    /// a user who likes a picture again and again.
    #[must_use]
    pub fn key_of_like(picture: Id, user: Id) -> String {
        format!("like:{picture}:{user}")
    }
}

/// The end of a topic's log. A topic without events has 0 and 0.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Head {
    /// That of the last event.
    pub seq: u64,
    /// That of the last event.
    pub total: i64,
}

/// The consequences of a change, stored with it in one step: either both are there or neither.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effects {
    /// The events for the live feed.
    pub events: Vec<NewEvent>,
    /// The tasks for the outbox.
    pub tasks: Vec<NewTask>,
}

/// The names of topics.
pub mod topic {
    use crate::model::Id;

    /// The topic of everybody's pictures: bodies are `{"picture": …}` of a new one, `{"deleted":
    /// id}` of one that is gone, and `{"deleted_album": id}` of all those of an album. The total is
    /// the number of pictures ever added.
    pub const TIMELINE: &str = "/timeline";

    /// Returns the topic of a picture's likes; bodies are `{"by": id of the user, "liked": bool}`.
    /// The total is the number of likes.
    #[must_use]
    pub fn likes(picture: Id) -> String {
        format!("/picture/{picture}/likes")
    }

    /// Returns the topic of a picture's comments; bodies are `{"comment": …}` or `{"deleted": id}`.
    /// The total is their number.
    #[must_use]
    pub fn comments(picture: Id) -> String {
        format!("/picture/{picture}/comments")
    }

    /// Returns the topics of a picture whose totals pages show.
    #[must_use]
    pub fn counted(picture: Id) -> [String; 2] {
        [likes(picture), comments(picture)]
    }

    /// The bounds between which the names of all bells lie.
    pub const BELLS: [&str; 2] = ["/user/", "/user0"];

    /// Returns the topic of a user's bell: likes and comments of others on the user's pictures, for
    /// that user only. Bodies are `{"kind": "like" | "comment", "by": name, "picture": id}`.
    #[must_use]
    pub fn bell(user: Id) -> String {
        format!("/user/{user}/bell")
    }
}
