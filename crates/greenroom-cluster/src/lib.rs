//! Actors beyond one machine, on NATS: groups, entities and durable messages.
//!
//! - A [`Cluster`] is a connection to the servers of NATS, or this process alone.
//! - Actors with `#[messages(remote = "…")]` are [`RemoteActor`]s: [published](Cluster::publish)
//!   under the name of a group by any number of nodes, or [`Entity`] with an identity, of which
//!   there is one activation in the cluster.
//! - A [`Remote`] is a reference to either, wherever it is; a [`RemoteCall`] asks, tells, or
//!   delivers durably. A [`RemoteError`] says whether a message was surely not handled.
//! - [`Stored`] keeps the state of an entity under a fence, so that no two activations both write.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/cluster.md")]
mod guide {}

mod cluster;
mod codec;
mod core;
mod deliver;
mod directory;
mod entity;
mod failure;
mod group;
mod meters;
mod names;
mod nats;
mod node;
mod remote;
mod settings;
mod status;
mod wire;

#[doc(hidden)]
pub use remote::NoFields;
#[doc(hidden)]
pub use serde;

pub use cluster::Cluster;
pub use deliver::Delivery;
pub use directory::{PUBLICATIONS_MAX, PublishError};
pub use entity::{
    Activation, Entity, HostError, HostSettings, HostStatus, Hosting, Key, Loaded, MemoryStorage,
    StateError, Storage, StorageError, StorageFuture, Stored,
};
pub use group::{Publication, PublishSettings};
pub use names::{ENTITY_ID_BYTES_MAX, EntityId, MESSAGE_ID_BYTES_MAX, NAME_BYTES_MAX, NameError};
pub use nats::ConnectError;
pub use node::{MemberChange, MemberEvent, NodeId};
pub use remote::{Handlers, Remote, RemoteActor, RemoteCall, RemoteError, RemoteMessage};
pub use settings::{ClusterSettings, SettingsError};
pub use status::{ClusterStatus, DurableStatus, GroupStatus, NodeStatus};
