use std::fmt;

use super::{SEGMENTS_MAX, TOPIC_BYTES_MAX};

/// The longest excerpt of a refused text in an error, in characters.
const SHOWN_MAX: usize = 80;

/// A text that is not a topic or pattern. It shows the text, its fault, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicError {
    shown: String,
    what: &'static str,
    fault: Fault,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Control { at: usize },
    EmptySegment { at: usize },
    NoSlash,
    PartialWildcard { at: usize },
    RestNotLast { at: usize },
    TooLong { bytes: usize },
    TooManySegments { segments: usize },
    Wildcard { at: usize },
}

impl TopicError {
    pub(super) fn topic(text: &str, fault: Fault) -> Self {
        Self::new(text, "topic", fault)
    }

    pub(super) fn pattern(text: &str, fault: Fault) -> Self {
        Self::new(text, "pattern", fault)
    }

    fn new(text: &str, what: &'static str, fault: Fault) -> Self {
        let mut shown: String = text.chars().take(SHOWN_MAX).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        Self { shown, what, fault }
    }
}

impl fmt::Display for TopicError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Debug's form of a string shows control characters as escapes, so that a topic from
        // outside cannot forge a line of a log.
        write!(
            formatter,
            "{:?} is no {}: {}",
            self.shown, self.what, self.fault
        )
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Control { at } => write!(formatter, "a control character at byte {at}"),
            Self::EmptySegment { at } => write!(
                formatter,
                "an empty segment at byte {at}; \
                 between two slashes, and after the last, there must be something"
            ),
            Self::NoSlash => write!(
                formatter,
                "it must begin with a slash, as `/picture/42/likes`"
            ),
            Self::PartialWildcard { at } => write!(
                formatter,
                "the `*` at byte {at} is part of a segment; a wildcard is a whole one, `*` or `**`"
            ),
            Self::RestNotLast { at } => write!(
                formatter,
                "the `**` at byte {at} is not the last segment; use `*` for one segment"
            ),
            Self::TooLong { bytes } => {
                write!(
                    formatter,
                    "it has {bytes} bytes, and may have {TOPIC_BYTES_MAX}"
                )
            }
            Self::TooManySegments { segments } => {
                write!(
                    formatter,
                    "it has {segments} segments, and may have {SEGMENTS_MAX}"
                )
            }
            Self::Wildcard { at } => write!(
                formatter,
                "the `*` at byte {at} belongs to patterns; a topic to publish to has none"
            ),
        }
    }
}

impl std::error::Error for TopicError {}
