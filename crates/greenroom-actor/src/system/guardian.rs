use crate::actor::Actor;

/// The root of a tree: the parent of actors that are spawned from outside.
pub(super) struct Guardian;

impl Actor for Guardian {}
