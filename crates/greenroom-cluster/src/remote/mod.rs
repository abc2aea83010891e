//! Actors whose messages may come from other processes.

mod actor;
mod call;
mod error;
mod handlers;
mod reference;

pub use actor::{RemoteActor, RemoteMessage};
pub use call::RemoteCall;
pub use error::RemoteError;
pub use handlers::Handlers;
pub use reference::Remote;
