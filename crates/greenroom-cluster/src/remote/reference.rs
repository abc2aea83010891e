use std::fmt;
use std::marker::PhantomData;

use super::RemoteActor;
use crate::Cluster;
use crate::wire::Target;

/// A reference to an actor somewhere in the cluster: any member of a group, or the one activation of
/// an entity. Clones are cheap.
///
/// `#[messages(remote = "…")]` gives it the methods that make [calls](super::RemoteCall).
pub struct Remote<A> {
    pub(crate) cluster: Cluster,
    pub(crate) target: Target,
    kind: PhantomData<fn() -> A>,
}

impl<A: RemoteActor> Remote<A> {
    pub(crate) fn new(cluster: Cluster, target: Target) -> Self {
        Self {
            cluster,
            target,
            kind: PhantomData,
        }
    }
}

impl<A> Clone for Remote<A> {
    fn clone(&self) -> Self {
        Self {
            cluster: self.cluster.clone(),
            target: self.target.clone(),
            kind: PhantomData,
        }
    }
}

impl<A: RemoteActor> fmt::Debug for Remote<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Remote({} of {})", self.target, A::NAME)
    }
}
