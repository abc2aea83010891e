use std::borrow::Borrow;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::error::Fault;
use super::{SEGMENTS_MAX, TOPIC_BYTES_MAX, TopicError};

/// The name of a topic, such as `/picture/42/likes`. Cheap to clone.
///
/// It begins with a slash and consists of 1 to [`SEGMENTS_MAX`] segments with a slash between
/// them, in all at most [`TOPIC_BYTES_MAX`] bytes. A segment is not empty, and has no control
/// character and no `*`. All other characters stand for themselves; upper and lower case differ.
///
/// ```
/// use greenroom_bus::Topic;
///
/// let likes: Topic = "/picture/42/likes".parse()?;
/// assert_eq!(likes.as_str(), "/picture/42/likes");
/// let error = "/picture//likes".parse::<Topic>().unwrap_err();
/// assert!(error.to_string().contains("an empty segment at byte 9"));
/// # Ok::<(), greenroom_bus::TopicError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Topic(Arc<str>);

impl Topic {
    /// Parses a topic. Parse a topic of many messages once, and keep it: publishing to a text
    /// parses and copies it each time.
    ///
    /// # Errors
    /// The fault, and where it is.
    pub fn new(text: &str) -> Result<Self, TopicError> {
        check(text).map_err(|fault| TopicError::topic(text, fault))?;
        if let Some(at) = text.find('*') {
            return Err(TopicError::topic(text, Fault::Wildcard { at }));
        }
        Ok(Self(text.into()))
    }

    /// Returns the text, with its leading slash.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the segments in their order, without slashes.
    pub fn segments(&self) -> impl Iterator<Item = &str> + Clone {
        split(&self.0)
    }

    /// Wraps a text that passed [`check`] and has no wildcard.
    pub(super) fn from_checked(text: Arc<str>) -> Self {
        Self(text)
    }

    pub(super) fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

/// Checks the rules that topics and patterns share.
pub(super) fn check(text: &str) -> Result<(), Fault> {
    if text.len() > TOPIC_BYTES_MAX {
        return Err(Fault::TooLong { bytes: text.len() });
    }
    if !text.starts_with('/') {
        return Err(Fault::NoSlash);
    }
    if let Some(at) = text.find(char::is_control) {
        return Err(Fault::Control { at });
    }
    if let Some(at) = text.find("//") {
        return Err(Fault::EmptySegment { at: at + 1 });
    }
    if text.ends_with('/') {
        return Err(Fault::EmptySegment { at: text.len() });
    }
    let segments = split(text).count();
    if segments > SEGMENTS_MAX {
        return Err(Fault::TooManySegments { segments });
    }
    Ok(())
}

pub(super) fn split(text: &str) -> impl Iterator<Item = &str> + Clone {
    text.split('/').skip(1)
}

impl FromStr for Topic {
    type Err = TopicError;

    fn from_str(text: &str) -> Result<Self, TopicError> {
        Self::new(text)
    }
}

impl TryFrom<&str> for Topic {
    type Error = TopicError;

    fn try_from(text: &str) -> Result<Self, TopicError> {
        Self::new(text)
    }
}

impl TryFrom<String> for Topic {
    type Error = TopicError;

    fn try_from(text: String) -> Result<Self, TopicError> {
        Self::new(&text)
    }
}

impl TryFrom<&String> for Topic {
    type Error = TopicError;

    fn try_from(text: &String) -> Result<Self, TopicError> {
        Self::new(text)
    }
}

impl From<&Topic> for Topic {
    fn from(topic: &Topic) -> Self {
        topic.clone()
    }
}

/// Lets [`Topic`] itself be used wherever a text can be parsed.
impl From<Infallible> for TopicError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl Borrow<str> for Topic {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Topic {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for Topic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(text: &str) -> String {
        Topic::new(text).expect_err("no topic").to_string()
    }

    #[test]
    fn segments_are_what_stands_between_slashes() {
        let topic = Topic::new("/picture/42/likes").expect("a topic");
        assert_eq!(
            topic.segments().collect::<Vec<_>>(),
            ["picture", "42", "likes"]
        );
        assert_eq!(
            Topic::new("/ä b?[c]\\")
                .expect("a topic")
                .segments()
                .count(),
            1
        );
    }

    #[test]
    fn errors_say_what_and_where() {
        assert!(error_of("").contains("must begin with a slash"));
        assert!(error_of("picture").contains("must begin with a slash"));
        assert!(error_of("/").contains("empty segment at byte 1"));
        assert!(error_of("/a/").contains("empty segment at byte 3"));
        assert!(error_of("/a//b").contains("empty segment at byte 3"));
        assert!(
            error_of("/a/b\n").contains(r#""/a/b\n" is no topic: a control character at byte 4"#)
        );
        assert!(error_of("/a/*").contains("`*` at byte 3 belongs to patterns"));
    }

    #[test]
    fn limits_hold_to_the_byte_and_the_segment() {
        let longest = format!("/{}", "a".repeat(TOPIC_BYTES_MAX - 1));
        assert!(Topic::new(&longest).is_ok());
        let error = error_of(&format!("{longest}a"));
        assert!(
            error.contains("it has 513 bytes, and may have 512"),
            "{error}"
        );
        assert!(error.len() < 200, "the text is cut: {error}");
        let deepest = "/a".repeat(SEGMENTS_MAX);
        assert!(Topic::new(&deepest).is_ok());
        assert!(error_of(&format!("{deepest}/a")).contains("it has 17 segments, and may have 16"));
    }
}
