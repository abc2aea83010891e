//! Actors: state with a mailbox, run by a dispatcher, under supervision.
//!
//! ```
//! use greenroom_actor::{Actor, ActorSystem, messages};
//!
//! struct Counter {
//!     value: u64,
//! }
//!
//! impl Actor for Counter {}
//!
//! #[messages]
//! impl Counter {
//!     #[message]
//!     fn add(&mut self, amount: u64) -> u64 {
//!         self.value += amount;
//!         self.value
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let counter = ActorSystem::new()?.spawn(|| Counter { value: 0 });
//! counter.add(1).tell()?;
//! assert_eq!(counter.add(2).ask().await?, 3);
//! # Ok(())
//! # }
//! ```
//!
//! - An [`Actor`] is a state that only its own handlers touch, one message at a time: a [`Handler`]
//!   replies at once, an [`AsyncHandler`] may wait, a [`ReplyHandler`] replies later. [`messages`]
//!   makes messages of methods.
//! - Others have an [`ActorRef`], or a [`Recipient`] that hides what kind of actor it is: to tell,
//!   to send and wait for room, to ask with a deadline.
//! - Every [`Mailbox`] is bounded, and has a policy for messages beyond its bound. A message that
//!   is not handled comes back to its sender or is a [`DeadLetter`].
//! - An actor that panics is restarted, after a back-off, and keeps its mailbox: [`Supervision`].
//! - An [`ActorSystem`] is a tree of actors and the [`Dispatcher`]s that run them.
//! - A handler reaches itself and its surroundings by its [`Context`]: children, timers, futures,
//!   other actors' ends.
//! - [`status`] shows all of it.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/actors.md")]
mod guide {}

mod actor;
mod ask;
mod call;
mod cell;
mod context;
mod dead_letter;
mod dispatcher;
mod error;
mod events;
mod id;
mod limits;
mod mailbox;
mod notifier;
mod panics;
mod path;
mod raw;
mod reason;
mod receive;
mod recipient;
mod reference;
mod reply;
mod router;
mod supervision;
mod system;
#[cfg(feature = "test-kit")]
pub mod testing;
mod timer;
mod traced;
mod watched;
#[cfg(feature = "web")]
pub mod web;

#[doc(hidden)]
pub use greenroom_actor_macros::greenroom_messages;
pub use greenroom_actor_macros::messages;

/// An error of any type, as hooks return it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

pub use actor::{Actor, AsyncHandler, Handler, ReplyHandler};
pub use ask::{Ask, AskError};
pub use call::Call;
pub use cell::{Ending, Terminated};
pub use context::{Context, PIPES_MAX, PipesFull, STASH_MAX, StashFull};
pub use dead_letter::{DeadLetter, DeadLetters};
pub use dispatcher::{Dispatcher, DispatcherError, DispatcherStatus, THROUGHPUT_DEFAULT};
pub use error::{SendError, TellError};
pub use events::EventStream;
pub use id::ActorId;
pub use limits::{LimitReached, Limits};
pub use mailbox::{Mailbox, Overflow};
pub use path::ActorPath;
pub use reason::Reason;
pub use receive::{Receive, marker};
pub use recipient::Recipient;
pub use reference::{ActorRef, WeakActorRef};
pub use reply::ReplyTo;
pub use router::{ConsistentHash, LeastLoaded, ROUTEES_MAX, RoundRobin, Router, Strategy};
pub use supervision::{Backoff, Cause, Directive, Failure, Scope, Supervision};
pub use system::{
    ActorSystem, ActorSystemBuilder, ActorSystemStatus, BuildError, DeadLetterCounts,
    STATUS_ACTORS_MAX, ShutdownReport, Spawn, SpawnError, TypeStatus, status, status_within,
};
pub use timer::Timer;
