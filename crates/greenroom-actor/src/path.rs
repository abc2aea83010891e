use std::fmt;
use std::sync::Arc;

use crate::cell::AnyCell;

/// The path of an actor, such as `/feeder-3/subscriber-17`. It is put together when it is
/// displayed: errors come in floods, and most are never read. Keeps the memory of an ended actor,
/// as a reference to it does.
#[derive(Clone)]
pub struct ActorPath(Arc<dyn AnyCell>);

impl ActorPath {
    pub(crate) fn new(actor: Arc<dyn AnyCell>) -> Self {
        Self(actor)
    }
}

impl fmt::Display for ActorPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.path())
    }
}

impl fmt::Debug for ActorPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0.path(), f)
    }
}

impl PartialEq<str> for ActorPath {
    fn eq(&self, other: &str) -> bool {
        self.0.path() == other
    }
}

impl PartialEq<&str> for ActorPath {
    fn eq(&self, other: &&str) -> bool {
        self.0.path() == *other
    }
}
