//! The server's subjects for topics and patterns.

use std::sync::Arc;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use crate::remote::{self, Channel, Naming};
use crate::topic::Segment;
use crate::{Pattern, Topic};

/// The characters that are escaped beside those above ASCII: those that mean something in a
/// subject, that its token may not have, and the escape itself.
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'%').add(b'*').add(b'.').add(b'>');

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Topic,
    Wildcard,
}

impl remote::Kind for Kind {
    fn is_pattern(self) -> bool {
        self == Self::Wildcard
    }
}

/// The subjects of topics below a prefix.
#[derive(Clone)]
pub(crate) struct Names {
    prefix: Arc<str>,
}

impl Naming for Names {
    type Kind = Kind;

    fn channel(&self, pattern: &Pattern) -> Channel<Kind> {
        let kind = if pattern.has_wildcard() {
            Kind::Wildcard
        } else {
            Kind::Topic
        };
        let name = self.subject(pattern).into();
        Channel { kind, name }
    }
}

impl Names {
    pub(super) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.into(),
        }
    }

    /// Returns the subject that matches the subjects of all topics.
    pub(super) fn all(&self) -> String {
        format!("{}.>", self.prefix)
    }

    /// Returns the subject of a topic or of a pattern, whose wildcards are the server's.
    pub(super) fn subject(&self, pattern: &Pattern) -> String {
        let mut subject = self.prefix.to_string();
        for segment in pattern.segments() {
            subject.push('.');
            match segment {
                Segment::One => subject.push('*'),
                Segment::Rest => subject.push('>'),
                Segment::Literal(literal) => subject.extend(utf8_percent_encode(literal, ESCAPED)),
            }
        }
        subject
    }

    /// Returns the topic of a subject. `None` if it is the subject of none: below another prefix,
    /// or not written as [`subject`](Self::subject) writes it.
    pub(super) fn topic(&self, subject: &str) -> Option<Topic> {
        let tokens = subject.strip_prefix(&*self.prefix)?.strip_prefix('.')?;
        let mut text = String::with_capacity(tokens.len() + 1);
        for token in tokens.split('.') {
            text.push('/');
            text.push_str(&percent_decode_str(token).decode_utf8().ok()?);
        }
        let topic = Topic::new(&text).ok()?;
        (self.subject(&Pattern::from(&topic)) == subject).then_some(topic)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names() -> Names {
        Names::new("app.bus")
    }

    fn subject(pattern: &str) -> String {
        names().subject(&Pattern::new(pattern).expect("a pattern"))
    }

    #[test]
    fn slashes_become_dots_and_wildcards_the_servers() {
        assert_eq!(subject("/picture/42/likes"), "app.bus.picture.42.likes");
        assert_eq!(subject("/picture/*/likes"), "app.bus.picture.*.likes");
        assert_eq!(subject("/picture/**"), "app.bus.picture.>");
        assert_eq!(subject("/**"), names().all());
    }

    #[test]
    fn what_a_subject_cannot_have_is_escaped() {
        assert_eq!(subject("/v1.2/a b"), "app.bus.v1%2E2.a%20b");
        assert_eq!(subject("/100%/a>b"), "app.bus.100%25.a%3Eb");
        assert_eq!(subject("/ä"), "app.bus.%C3%A4");
        assert_eq!(subject("/$JS/a:b@c_d-e"), "app.bus.$JS.a:b@c_d-e");
    }

    #[test]
    fn a_foreign_subject_is_no_topic() {
        for subject in [
            "app.bus",
            "app.bus.",
            "app.busy.a",
            "other.a",
            "app.bus.a..b",
            "app.bus.%2A",
            "app.bus.%2e",
            "app.bus.%41",
            "app.bus.%FF",
            "app.bus.ä",
        ] {
            assert_eq!(names().topic(subject), None, "{subject}");
        }
    }

    proptest! {
        #[test]
        fn every_topic_comes_back_from_a_subject_that_the_server_takes(
            segments in prop::collection::vec("[^/*\\p{Cc}]{1,8}", 1..8)
        ) {
            let topic = Topic::new(&format!("/{}", segments.join("/"))).expect("a topic");
            let subject = names().subject(&Pattern::from(&topic));
            prop_assert!(subject.bytes().all(|byte| byte.is_ascii_graphic()));
            prop_assert_eq!(subject.split('.').count(), 2 + segments.len());
            prop_assert_eq!(names().topic(&subject), Some(topic));
        }
    }
}
