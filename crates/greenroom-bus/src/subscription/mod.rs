//! The receiving end: a bounded queue that a task reads, or a sink that the bus calls.

mod error;
mod handle;
mod lost;
mod offer;
mod overflow;
mod queue;
mod receiver;
mod sink;

pub use error::{End, EstablishError};
pub use handle::{SinkSubscription, Subscription};
pub(crate) use offer::Offer;
pub use overflow::{EVENTS_MAX, Overflow, QueueSettings};
pub(crate) use receiver::Receiver;
pub use sink::{Sink, SinkError};
