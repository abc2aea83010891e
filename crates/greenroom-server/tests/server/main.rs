//! Tests of what a client of the server sees, over real sockets. Tests of time run on a paused
//! clock.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

mod acceptors;
mod addresses;
mod bodies_request;
mod bodies_response;
mod client;
mod connect;
mod connections;
mod continues;
mod cut_short;
mod drain;
mod drain_idle;
mod files;
mod http2;
mod http2_content;
mod http2_floods;
mod http2_frames;
mod http2_heads;
mod http2_leaving;
mod http2_limits;
mod http2_logged;
mod http2_memory;
mod http2_pace;
#[cfg(feature = "http3")]
mod http3;
mod informational;
mod lag;
mod leaving;
mod limits;
mod listening;
mod long_bodies;
mod memory;
mod over;
mod panics;
mod pipelining;
mod proxied;
mod rig;
mod timeouts;
mod timeouts_body;
mod timeouts_response;
mod tls;
mod torrents;
mod upgrades;
