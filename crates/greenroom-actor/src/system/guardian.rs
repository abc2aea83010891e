use crate::actor::Actor;

/// The root of a tree: the parent of what is spawned from outside.
pub(super) struct Guardian;

impl Actor for Guardian {}
