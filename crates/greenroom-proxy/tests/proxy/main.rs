//! A proxy behind a real server, before real upstreams.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "these tests use a part of it")]
#[path = "../../../greenroom-cli/tests/authority/mod.rs"]
mod authority;
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
mod tls;
mod upgrades;
mod upstreams;
