//! Actors whose messages may come from other processes.

mod actor;
mod handlers;
mod no_fields;

pub use actor::{RemoteActor, RemoteMessage};
pub use handlers::Handlers;
pub use no_fields::NoFields;
