use std::fmt;

use crate::names::EntityId;

/// An entity among all of a cluster: its kind and its id.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    kind: &'static str,
    id: EntityId,
}

impl Key {
    /// Creates the key of an entity whose actor has this name: [`RemoteActor::NAME`].
    ///
    /// [`RemoteActor::NAME`]: crate::RemoteActor::NAME
    #[must_use]
    pub fn new(actor: &'static str, id: EntityId) -> Self {
        let kind = kind_of(actor);
        Self { kind, id }
    }

    /// Returns the kind: the name of the actor without what follows its last dot, the version of
    /// its messages. `album.v1` and `album.v2` are versions of one kind, and keep one state.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Returns the id within the kind.
    #[must_use]
    pub fn id(&self) -> &EntityId {
        &self.id
    }

    /// Returns the name of the entity in stores whose keys are narrow: the kind, a dot, and the id,
    /// or `=` and its bytes in hexadecimal if it has other characters than `a-z`, `A-Z`, `0-9`,
    /// `-` and `_`. At most 578 bytes.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}.{}", self.kind, self.id.encoded())
    }
}

/// Returns the name of an actor without the version of its messages.
pub(crate) fn kind_of(actor: &str) -> &str {
    actor.rsplit_once('.').map_or(actor, |(kind, _)| kind)
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.kind, self.id.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(actor: &'static str, id: &str) -> Key {
        Key::new(actor, EntityId::new(id).expect("it is short"))
    }

    #[test]
    fn a_name_has_no_character_that_a_store_would_not_take() {
        assert_eq!(key("album.v1", "4").name(), "album.4");
        assert_eq!(key("album.v1", "4*").name(), "album.=342a");
        assert_eq!(key("album.v1", "é").name(), "album.=c3a9");
        assert_eq!(key("album.v1", "4\n").to_string(), r#"album "4\n""#);
        assert_ne!(key("album.v1", "a").name(), key("album.v1", "A").name());
    }

    #[test]
    fn versions_of_messages_have_the_same_entities() {
        assert_eq!(key("album.v1", "4"), key("album.v2", "4"));
        assert_eq!(key("album", "4"), key("album.v2", "4"));
        assert_ne!(key("photo.album.v1", "4"), key("photo.v1", "4"));
    }
}
