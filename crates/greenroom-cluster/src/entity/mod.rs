//! Entities: actors with an identity, of which there is one activation in the cluster.
//!
//! A message to an entity goes to one of the nodes that host its kind ([`placement`]). The host
//! there claims the entity's lease ([`lease`]) and loads its state ([`storage`]), then the entity
//! is active until it was idle for a while, its node drains, or its node's own lease is lost.
//!
//! Safety rests on the *fence* alone, the number of the claim: a later claim has a larger one. A
//! new activation writes its fence to the storage before it does anything else, and from then on
//! no write with a smaller one succeeds. Clocks, time-outs and what a node believes of another
//! decide only how soon an entity is taken over, and never what is stored.

mod cell;
mod content;
mod host;
mod hosting;
mod key;
mod kv;
mod lease;
pub(crate) mod placement;
mod route;
mod state;
mod storage;

pub use host::{HostSettings, HostStatus};
pub use hosting::{HostError, Hosting};
pub use key::Key;
pub(crate) use key::kind_of;
pub(crate) use route::Entities;
pub use state::{Activation, Entity, StateError, Stored};
pub use storage::{Loaded, MemoryStorage, Storage, StorageError, StorageFuture};
