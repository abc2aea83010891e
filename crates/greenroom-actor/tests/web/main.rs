//! Connections as actors, with real clients over real sockets.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

mod client;
mod closing;
mod frames;
mod places;
mod rig;
mod session;
mod slow_readers;
mod spans;
mod sse;
mod vanishing;
