//! What an application gets from `greenroom::serve` and `greenroom::Server`, with axum's own types.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

mod bodies;
mod body_limit;
mod client_addr;
mod gate;
mod h2c;
mod placing;
mod pressure;
mod rig;
mod serving;
mod shapes;
mod telling;
mod websocket;
