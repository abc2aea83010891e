//! Actors beyond one machine, on NATS: groups, entities and durable messages.

mod codec;
mod remote;
mod wire;

#[doc(hidden)]
pub use remote::NoFields;
#[doc(hidden)]
pub use serde;

pub use remote::{Handlers, RemoteActor, RemoteMessage};
