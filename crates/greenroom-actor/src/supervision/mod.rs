//! Supervision: the decisions about actors that fail.

mod backoff;
mod failure;
mod strategy;

pub use backoff::Backoff;
pub use failure::{Cause, Failure};
pub use strategy::{Directive, Scope, Supervision};
