//! Actors whose messages may come from other processes.

mod actor;
mod handlers;

pub use actor::{RemoteActor, RemoteMessage};
pub use handlers::Handlers;
