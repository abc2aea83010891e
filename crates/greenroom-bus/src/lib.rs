//! Topics by name and by pattern: publish and subscribe within a process, and between machines
//! through Redis or NATS.
//!
//! ```
//! use greenroom_bus::{Bus, Event};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let bus = Bus::in_process();
//! let mut likes = bus.subscribe("/picture/*/likes")?;
//! bus.publish("/picture/42/likes", "ada").await?;
//! match likes.recv().await {
//!     Some(Event::Message(message)) => assert_eq!(message.payload(), "ada"),
//!     Some(Event::Gap { missed, cause }) => println!("missed {missed:?}: {cause:?}"),
//!     None => println!("the bus is gone"),
//! }
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(example()).unwrap();
//! ```
//!
//! - A [`Bus`] is in-process, or an adaptor to Redis or NATS. Subscribers see no difference but
//!   [`Event::Gap`].
//! - A [`Subscription`] is a bounded queue; a [`Sink`] is called instead. Neither slows a
//!   publisher.
//! - Missing messages are reported in their place by an [`Event::Gap`].
//! - Delivery is at most once; with NATS a bus can [replay](NatsSettings::replay) what was missed
//!   while its connection was lost. A message that must not be lost belongs in a database; the bus
//!   then says that there is something to read.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/bus.md")]
mod guide {}

mod bus;
mod core;
mod event;
#[cfg(feature = "json")]
mod json;
mod meters;
mod nats;
mod publish;
mod redis;
mod remote;
mod status;
mod subscription;
mod table;
mod topic;

pub use crate::core::{SUBSCRIPTIONS_MAX, SubscribeError};
pub use bus::Bus;
pub use event::{Event, GapCause, Message};
#[cfg(feature = "json")]
pub use json::JsonError;
pub use nats::{NatsSettings, ReplaySettings};
pub use publish::{Accepted, PAYLOAD_BYTES_MAX, PublishError};
pub use redis::RedisSettings;
pub use remote::{Server, SettingsError, WhileAway};
pub use status::{ConnectionState, NatsStatus, RemoteStatus, ReplayStatus, Status};
pub use subscription::{
    EVENTS_MAX, End, EstablishError, Overflow, QueueSettings, Sink, SinkError, SinkSubscription,
    Subscription,
};
pub use topic::{Pattern, SEGMENTS_MAX, TOPIC_BYTES_MAX, Topic, TopicError};
