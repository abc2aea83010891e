//! Groups: actors of several nodes under one name, any of which handles a message.

mod member;
mod publication;

pub(crate) use member::Member;
pub use publication::{Publication, PublishSettings};
