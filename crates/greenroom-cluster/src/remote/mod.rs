//! Actors whose messages may come from other processes.

mod actor;
mod call;
mod error;
mod handlers;
mod no_fields;
mod reference;

pub use actor::{RemoteActor, RemoteMessage};
pub use call::RemoteCall;
pub(crate) use call::{TIMEOUT_DEFAULT, TIMEOUT_MAX};
pub use error::RemoteError;
pub use handlers::Handlers;
pub use no_fields::NoFields;
pub use reference::Remote;
