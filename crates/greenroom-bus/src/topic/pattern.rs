use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::error::Fault;
use super::name::{check, split};
use super::{Topic, TopicError};

/// The set of topics of a subscription: one topic, or all that match. Cheap to clone.
///
/// A pattern is written as a [`Topic`], under the same limits, in which a segment may be
/// - `*`: exactly one segment of any text;
/// - `**`: the rest, one segment or more. It must be last.
///
/// | pattern | matches | does not match |
/// |---|---|---|
/// | `/picture/42/likes` | itself | anything else |
/// | `/picture/*/likes` | `/picture/42/likes` | `/picture/likes`, `/picture/4/2/likes` |
/// | `/picture/**` | `/picture/42`, `/picture/42/likes` | `/picture` |
/// | `/**` | every topic | |
///
/// ```
/// use greenroom_bus::{Pattern, Topic};
///
/// let likes: Pattern = "/picture/*/likes".parse()?;
/// assert!(likes.matches(&Topic::new("/picture/42/likes")?));
/// # Ok::<(), greenroom_bus::TopicError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Pattern {
    text: Arc<str>,
    has_wildcard: bool,
}

/// One segment of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Segment<'a> {
    Literal(&'a str),
    One,
    Rest,
}

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// The fault, and where it is.
    pub fn new(text: &str) -> Result<Self, TopicError> {
        check(text)
            .and_then(|()| check_wildcards(text))
            .map_err(|fault| TopicError::pattern(text, fault))?;
        Ok(Self {
            text: text.into(),
            has_wildcard: text.contains('*'),
        })
    }

    /// Returns the text, with its leading slash.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the topic that this pattern is, if it has no wildcard.
    #[must_use]
    pub fn topic(&self) -> Option<Topic> {
        (!self.has_wildcard).then(|| Topic::from_checked(Arc::clone(&self.text)))
    }

    /// Returns `true` if `topic` matches this pattern.
    #[must_use]
    pub fn matches(&self, topic: &Topic) -> bool {
        let mut names = topic.segments();
        for segment in self.segments() {
            let is_met = match (segment, names.next()) {
                (Segment::Rest, name) => return name.is_some(),
                (Segment::One, name) => name.is_some(),
                (Segment::Literal(literal), name) => name == Some(literal),
            };
            if !is_met {
                return false;
            }
        }
        names.next().is_none()
    }

    pub(crate) fn has_wildcard(&self) -> bool {
        self.has_wildcard
    }

    pub(crate) fn segments(&self) -> impl Iterator<Item = Segment<'_>> {
        split(&self.text).map(|segment| match segment {
            "*" => Segment::One,
            "**" => Segment::Rest,
            literal => Segment::Literal(literal),
        })
    }
}

fn check_wildcards(text: &str) -> Result<(), Fault> {
    let mut at = 0;
    for segment in split(text) {
        at += 1;
        match segment {
            "**" if at + segment.len() < text.len() => return Err(Fault::RestNotLast { at }),
            "*" | "**" => {}
            literal => {
                if let Some(star) = literal.find('*') {
                    return Err(Fault::PartialWildcard { at: at + star });
                }
            }
        }
        at += segment.len();
    }
    Ok(())
}

impl FromStr for Pattern {
    type Err = TopicError;

    fn from_str(text: &str) -> Result<Self, TopicError> {
        Self::new(text)
    }
}

impl TryFrom<&str> for Pattern {
    type Error = TopicError;

    fn try_from(text: &str) -> Result<Self, TopicError> {
        Self::new(text)
    }
}

impl TryFrom<String> for Pattern {
    type Error = TopicError;

    fn try_from(text: String) -> Result<Self, TopicError> {
        Self::new(&text)
    }
}

impl TryFrom<&String> for Pattern {
    type Error = TopicError;

    fn try_from(text: &String) -> Result<Self, TopicError> {
        Self::new(text)
    }
}

impl From<&Pattern> for Pattern {
    fn from(pattern: &Pattern) -> Self {
        pattern.clone()
    }
}

impl From<Topic> for Pattern {
    fn from(topic: Topic) -> Self {
        Self::from(&topic)
    }
}

impl From<&Topic> for Pattern {
    fn from(topic: &Topic) -> Self {
        Self {
            text: topic.shared(),
            has_wildcard: false,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, topic: &str) -> bool {
        let pattern = Pattern::new(pattern).expect("a pattern");
        pattern.matches(&Topic::new(topic).expect("a topic"))
    }

    fn error_of(text: &str) -> String {
        Pattern::new(text).expect_err("no pattern").to_string()
    }

    #[test]
    fn a_star_is_one_segment() {
        assert!(matches("/picture/*/likes", "/picture/42/likes"));
        assert!(!matches("/picture/*/likes", "/picture/likes"));
        assert!(!matches("/picture/*/likes", "/picture/4/2/likes"));
        assert!(!matches("/picture/*", "/picture/42/likes"));
    }

    #[test]
    fn two_stars_are_one_segment_or_more() {
        assert!(matches("/picture/**", "/picture/42"));
        assert!(matches("/picture/**", "/picture/42/likes"));
        assert!(!matches("/picture/**", "/picture"));
        assert!(!matches("/picture/**", "/pictures/42"));
        assert!(matches("/**", "/a"));
    }

    #[test]
    fn a_topic_is_the_pattern_of_itself() {
        assert!(matches("/a/b", "/a/b"));
        assert!(!matches("/a/b", "/a"));
        assert!(!matches("/a", "/a/b"));
        let pattern = Pattern::new("/a/b").expect("a pattern");
        assert_eq!(pattern.topic(), Some(Topic::new("/a/b").expect("a topic")));
        assert_eq!(Pattern::new("/a/*").expect("a pattern").topic(), None);
    }

    #[test]
    fn errors_say_what_and_where() {
        assert!(error_of("/a/**/b").contains("`**` at byte 3 is not the last segment"));
        assert!(error_of("/a/b*").contains("`*` at byte 4 is part of a segment"));
        assert!(error_of("/a/***").contains("`*` at byte 3 is part of a segment"));
        assert!(error_of("/a//*").contains("empty segment at byte 3"));
    }
}
