//! A proxy behind a real server, before real upstreams.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bodies;
mod broken;
mod expectations;
mod foreign;
mod forwarding;
mod health;
mod limits;
mod log;
mod retries;
mod rig;
mod upgrades;
mod upstreams;
