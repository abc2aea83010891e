//! Actors: state with a mailbox, run by a dispatcher, under supervision.

mod actor;
mod ask;
mod call;
mod cell;
mod context;
mod dead_letter;
mod dispatcher;
mod error;
mod events;
mod mailbox;
mod raw;
mod receive;
mod recipient;
mod reference;
mod reply;
mod router;
mod supervision;
mod system;
mod timer;
#[cfg(feature = "web")]
pub mod web;

pub use greenroom_actor_macros::messages;
#[doc(hidden)]
pub use greenroom_actor_macros::messages_of_greenroom;

/// An error of whatever kind, as hooks return it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

pub use actor::{Actor, AsyncHandler, Handler, ReplyHandler};
pub use ask::Ask;
pub use call::Call;
pub use cell::{Ending, Terminated};
pub use context::{Context, PIPES_MAX, PipesFull, STASH_MAX, StashFull};
pub use dead_letter::{DeadLetter, DeadLetters, Reason};
pub use dispatcher::{Dispatcher, DispatcherError, THROUGHPUT_DEFAULT};
pub use error::{AskError, SendError, TellError};
pub use events::EventStream;
pub use mailbox::{Mailbox, Overflow};
pub use receive::{Receive, marker};
pub use recipient::Recipient;
pub use reference::{ActorId, ActorRef, WeakActorRef};
pub use reply::ReplyTo;
pub use router::{ConsistentHash, LeastLoaded, ROUTEES_MAX, RoundRobin, Router, Strategy};
pub use supervision::{Backoff, Cause, Directive, Failure, Scope, Supervision};
pub use system::{
    ActorSystem, ActorSystemBuilder, ActorSystemStatus, BuildError, DeadLetterCounts,
    DispatcherStatus, STATUS_ACTORS_MAX, ShutdownReport, Spawn, TypeStatus, status,
};
pub use timer::Timer;
