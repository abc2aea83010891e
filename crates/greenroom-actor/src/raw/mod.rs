//! The one place with unsafe code: memory of messages, the lane that links them, the cell of an
//! actor's state and the turn that gives access to it. Everything that this module shows to the
//! rest of the crate is safe to use; loom and Miri run over it (see the README).
#![allow(
    unsafe_code,
    reason = "the core of an actor: each block is argued, loom and Miri check it"
)]

mod envelope;
mod job;
mod lane;
mod pool;
mod running;
mod state;
mod sync;
mod turn;

pub(crate) use envelope::{Chain, Deliver, Envelope, Undelivered};
pub(crate) use job::Job;
pub(crate) use lane::Lane;
pub(crate) use running::Running;
pub(crate) use state::{Fault, Served, StateCell};
pub(crate) use turn::{ActorCell, Turn};
