use std::fmt;

use serde::Serialize;

/// The number of an actor, unique within the process. Later actors have larger numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct ActorId(pub(crate) u64);

impl ActorId {
    /// The number of a watcher that is no actor.
    pub(crate) const OUTSIDE: Self = Self(0);
}

impl fmt::Display for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
