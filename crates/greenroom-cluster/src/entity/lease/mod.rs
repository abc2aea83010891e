//! Leases: the claims of nodes to entities.

mod jet_stream;
mod local;

pub(crate) use jet_stream::JetStreamLeases;
pub(crate) use local::{LocalLeases, LocalNodes};

use futures_util::future::BoxFuture;
use greenroom_actor::BoxError;

use super::Key;

/// Hands out leases to one node.
///
/// A lease is valid as long as its node is registered, and its *fence* is larger than that of every
/// lease of the entity before it. No more is promised: a node may hold a lease by mistake for some
/// time after another has got a newer one.
pub(crate) trait Leases: Send + Sync + 'static {
    /// Claims an entity for this node. A lease that the node has already is replaced by one with a
    /// larger fence.
    fn claim<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Claim, BoxError>>;

    /// Gives a lease back, unless another has replaced it.
    fn release<'a>(&'a self, key: &'a Key, fence: u64) -> BoxFuture<'a, Result<(), BoxError>>;
}

/// The outcome of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The entity is this node's.
    Owned { fence: u64 },
    /// Another node has it, and is registered.
    HeldBy { node: String },
}
