//! The messages of the feed's protocol.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;

/// A message of the server.
#[derive(Debug, Deserialize)]
pub(crate) struct Message<'a> {
    /// Watches that are in force, with their positions.
    #[serde(default)]
    pub(crate) at: BTreeMap<String, u64>,
    #[serde(borrow, default)]
    pub(crate) events: Vec<Event<'a>>,
    /// Positions that are not kept any more.
    #[serde(default)]
    pub(crate) reset: BTreeMap<String, u64>,
    /// Rejected topics, with the reason.
    #[serde(default)]
    pub(crate) refused: BTreeMap<String, String>,
}

/// An event, as far as it matters here.
#[derive(Debug, Deserialize)]
pub(crate) struct Event<'a> {
    #[serde(borrow)]
    pub(crate) topic: Cow<'a, str>,
    pub(crate) seq: u64,
}

/// Returns the topic of a picture's likes.
pub(crate) fn likes_topic(picture: &str) -> String {
    format!("/picture/{picture}/likes")
}

/// Returns the command that watches topics, each from behind this number, or from now on.
pub(crate) fn watch<'a>(topics: impl IntoIterator<Item = (&'a str, Option<u64>)>) -> String {
    let positions: BTreeMap<&str, Option<u64>> = topics.into_iter().collect();
    json!({ "watch": positions }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_and_commands_written() {
        let text = r#"{"events":[{"topic":"/a","seq":3,"total":1,"at":"x","body":{}}]}"#;
        let message: Message<'_> = serde_json::from_str(text).expect("a message");
        assert_eq!(
            (message.events[0].topic.as_ref(), message.events[0].seq),
            ("/a", 3)
        );
        let message: Message<'_> = serde_json::from_str(r#"{"at":{"/a":7}}"#).expect("a message");
        assert_eq!(message.at["/a"], 7);
        let command = watch([("/a", Some(7)), ("/b", None)]);
        assert_eq!(command, r#"{"watch":{"/a":7,"/b":null}}"#);
    }
}
