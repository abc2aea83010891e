//! Actors beyond one machine, on NATS: groups, entities and durable messages.

mod cluster;
mod codec;
mod core;
mod deliver;
mod directory;
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
pub use group::{Publication, PublishSettings};
pub use names::{ENTITY_ID_BYTES_MAX, EntityId, NAME_BYTES_MAX, NameError};
pub use nats::ConnectError;
pub use node::{MemberChange, MemberEvent, NodeId};
pub use remote::{Handlers, Remote, RemoteActor, RemoteCall, RemoteError, RemoteMessage};
pub use settings::{ClusterSettings, SettingsError};
pub use status::{ClusterStatus, GroupStatus, NodeStatus};
