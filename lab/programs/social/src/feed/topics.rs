//! The messages of the feed's protocol.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;

/// The numbers of the last events, by topic.
pub(crate) type Positions = BTreeMap<String, u64>;

/// A message of the server.
#[derive(Debug, Deserialize)]
pub(super) struct Message<'a> {
    /// Watches that are in force, with their positions.
    #[serde(default)]
    pub(super) at: Positions,
    #[serde(borrow, default)]
    pub(super) events: Vec<Event<'a>>,
    /// Positions that are not kept any more.
    #[serde(default)]
    pub(super) reset: Positions,
    /// Rejected topics, with the reason.
    #[serde(default)]
    pub(super) refused: BTreeMap<String, String>,
}

/// An event, as far as it matters here.
#[derive(Debug, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow)]
    pub(super) topic: Cow<'a, str>,
    pub(super) seq: u64,
}

/// Returns the topic of a picture's likes.
pub(crate) fn likes_topic(picture: &str) -> String {
    format!("/picture/{picture}/likes")
}

/// Returns the command that watches topics, each from behind this number, or from now on.
pub(super) fn watch<'a>(topics: impl IntoIterator<Item = (&'a str, Option<u64>)>) -> String {
    let positions: BTreeMap<&str, Option<u64>> = topics.into_iter().collect();
    json!({ "watch": positions }).to_string()
}
