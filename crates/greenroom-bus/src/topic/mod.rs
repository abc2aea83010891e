//! Names of topics, and patterns that stand for many of them.

mod error;
mod name;
mod pattern;

pub use error::TopicError;
pub use name::Topic;
pub use pattern::Pattern;
pub(crate) use pattern::Segment;

/// The longest topic or pattern, in bytes.
pub const TOPIC_BYTES_MAX: usize = 512;

/// The most segments of a topic or pattern: `/picture/42/likes` has three.
pub const SEGMENTS_MAX: usize = 16;
