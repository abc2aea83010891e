//! The exchange of the program for its next version, by real processes and real clients.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "upgrade/addresses.rs"]
mod addresses;
#[path = "upgrade/asking.rs"]
mod asking;
mod authority;
#[path = "upgrade/connections.rs"]
mod connections;
#[path = "upgrade/failing.rs"]
mod failing;
mod outside;
#[path = "upgrade/process.rs"]
mod process;
#[allow(dead_code, reason = "these tests use a part of it")]
mod program;
#[path = "upgrade/sites.rs"]
mod sites;
#[path = "upgrade/store.rs"]
mod store;
#[path = "upgrade/systemd.rs"]
mod systemd;
#[path = "upgrade/versions.rs"]
mod versions;
