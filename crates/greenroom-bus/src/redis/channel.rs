//! The server's channels for topics and patterns.

use std::sync::Arc;

use redis::PushKind;

use crate::Pattern;
use crate::remote::{self, Channel, Naming};
use crate::topic::Segment;

/// The set of commands that a channel takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Topic,
    Shard,
    Glob,
}

impl Kind {
    fn of(pattern: &Pattern, is_sharded: bool) -> Self {
        match (pattern.has_wildcard(), is_sharded) {
            (true, _) => Self::Glob,
            (false, true) => Self::Shard,
            (false, false) => Self::Topic,
        }
    }

    pub(super) fn subscribe(self) -> &'static str {
        match self {
            Self::Topic => "SUBSCRIBE",
            Self::Shard => "SSUBSCRIBE",
            Self::Glob => "PSUBSCRIBE",
        }
    }

    pub(super) fn unsubscribe(self) -> &'static str {
        match self {
            Self::Topic => "UNSUBSCRIBE",
            Self::Shard => "SUNSUBSCRIBE",
            Self::Glob => "PUNSUBSCRIBE",
        }
    }
}

impl remote::Kind for Kind {
    fn is_pattern(self) -> bool {
        self == Self::Glob
    }
}

/// The channels' names and kinds.
pub(crate) struct Names {
    pub(super) is_sharded: bool,
}

impl Naming for Names {
    type Kind = Kind;

    fn channel(&self, pattern: &Pattern) -> Channel<Kind> {
        Channel {
            kind: Kind::of(pattern, self.is_sharded),
            name: name(pattern),
        }
    }
}

/// The server's confirmation of a command.
pub(super) enum Confirmation {
    Subscribed(Kind),
    Unsubscribed(Kind),
}

impl Confirmation {
    pub(super) fn of(push: &PushKind) -> Option<Self> {
        match push {
            PushKind::Subscribe => Some(Self::Subscribed(Kind::Topic)),
            PushKind::SSubscribe => Some(Self::Subscribed(Kind::Shard)),
            PushKind::PSubscribe => Some(Self::Subscribed(Kind::Glob)),
            PushKind::Unsubscribe => Some(Self::Unsubscribed(Kind::Topic)),
            PushKind::SUnsubscribe => Some(Self::Unsubscribed(Kind::Shard)),
            PushKind::PUnsubscribe => Some(Self::Unsubscribed(Kind::Glob)),
            _ => None,
        }
    }
}

/// Returns the channel's name at the server. Its `*` crosses slashes, so a glob finds more than the
/// pattern does: messages by a glob are matched again.
fn name(pattern: &Pattern) -> Arc<str> {
    if !pattern.has_wildcard() {
        return pattern.as_str().into();
    }
    let mut glob = String::with_capacity(pattern.as_str().len());
    for segment in pattern.segments() {
        glob.push('/');
        match segment {
            Segment::One | Segment::Rest => glob.push('*'),
            Segment::Literal(literal) => push_escaped(&mut glob, literal),
        }
    }
    glob.into()
}

fn push_escaped(glob: &mut String, literal: &str) {
    for character in literal.chars() {
        if matches!(character, '?' | '[' | ']' | '\\' | '^') {
            glob.push('\\');
        }
        glob.push(character);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_has_stars_and_escapes() {
        let name = |text| name(&Pattern::new(text).expect("a pattern")).to_string();
        assert_eq!(name("/a/*/c"), "/a/*/c");
        assert_eq!(name("/a/**"), "/a/*");
        assert_eq!(name(r"/a?[b]\/*"), r"/a\?\[b\]\\/*");
        assert_eq!(name("/a?/b"), "/a?/b", "a topic is taken as it is");
    }
}
