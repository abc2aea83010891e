use std::collections::BTreeMap;

use greenroom::actor::web::Frame;
use serde::Serialize;

use crate::model::Event;

/// The length in bytes at which a frame of events is closed; the rest goes into the next one. A
/// connection keeps its write buffer, so longer frames would cost memory for good.
const EVENTS_BYTES: usize = 8 * 1024;
/// The most rejected topics that wait to be reported to a client.
pub(super) const REFUSED_MAX: usize = 1_024;

const OPENING: &str = r#"{"events":["#;
const CLOSING: &str = "]}";

/// Returns an event as the JSON that clients get.
pub(super) fn text_of(event: &Event) -> String {
    serde_json::to_string(event).expect("an event is JSON throughout")
}

/// A builder of a frame of events, from texts that are JSON already.
#[derive(Debug, Default)]
pub(super) struct Events {
    text: String,
    count: u64,
}

impl Events {
    pub(super) fn push(&mut self, event: &str) {
        self.text
            .push_str(if self.count == 0 { OPENING } else { "," });
        self.text.push_str(event);
        self.count += 1;
    }

    pub(super) fn is_full(&self) -> bool {
        self.text.len() >= EVENTS_BYTES
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the frame; `None` if it has no events.
    pub(super) fn finish(mut self) -> Option<Frame> {
        (self.count > 0).then(|| {
            self.text.push_str(CLOSING);
            Frame::text(self.text)
        })
    }
}

/// Notices to a client about its topics, which precede events.
#[derive(Debug, Default)]
pub(super) struct Notices {
    refused: BTreeMap<String, String>,
    reset: BTreeMap<String, u64>,
    at: BTreeMap<String, u64>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Notice {
    Refused(BTreeMap<String, String>),
    Reset(BTreeMap<String, u64>),
    At(BTreeMap<String, u64>),
}

impl Notices {
    /// Rejects a topic; returns `false` if there are [`REFUSED_MAX`] already.
    pub(super) fn refuse(&mut self, topic: String, reason: impl Into<String>) -> bool {
        self.refused.insert(topic, reason.into());
        self.refused.len() <= REFUSED_MAX
    }

    pub(super) fn reset(&mut self, topic: &str, end: u64) {
        self.at.remove(topic);
        self.reset.insert(topic.to_owned(), end);
    }

    pub(super) fn at(&mut self, topic: &str, position: u64) {
        self.at.insert(topic.to_owned(), position);
    }

    /// Drops the notices of a topic that the client no longer watches.
    pub(super) fn forget(&mut self, topic: &str) {
        self.at.remove(topic);
        self.reset.remove(topic);
    }

    /// Returns the notices as frames, in the order in which they are to be sent, and leaves none.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Frame> + use<> {
        let Self { refused, reset, at } = std::mem::take(self);
        [
            (!refused.is_empty()).then_some(Notice::Refused(refused)),
            (!reset.is_empty()).then_some(Notice::Reset(reset)),
            (!at.is_empty()).then_some(Notice::At(at)),
        ]
        .into_iter()
        .flatten()
        .filter_map(|notice| serde_json::to_string(&notice).ok())
        .map(Frame::text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_joined_as_they_are() {
        let mut events = Events::default();
        events.push(r#"{"seq":1}"#);
        events.push(r#"{"seq":2}"#);
        let frame = events.finish().expect("there are two");
        assert_eq!(frame.as_text(), Some(r#"{"events":[{"seq":1},{"seq":2}]}"#));
        assert_eq!(Events::default().finish(), None);
    }

    #[test]
    fn notices_are_one_frame_of_each_kind_and_told_once() {
        let mut notices = Notices::default();
        notices.at("/a", 1);
        notices.at("/b", 2);
        notices.reset("/b", 9);
        assert!(notices.refuse("/c".to_owned(), "no"));
        let texts: Vec<_> = notices
            .take()
            .filter_map(|frame| frame.as_text().map(str::to_owned))
            .collect();
        assert_eq!(
            texts,
            [
                r#"{"refused":{"/c":"no"}}"#,
                r#"{"reset":{"/b":9}}"#,
                r#"{"at":{"/a":1}}"#
            ]
        );
        assert_eq!(notices.take().count(), 0);
    }
}
