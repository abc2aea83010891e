//! `greenroom::serve` and `greenroom::Server` as an application sees them, with axum's own types.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

#[cfg(feature = "admin")]
mod admin;
mod bodies;
mod body_limits;
mod client_addr;
mod forms;
mod gate;
mod h2c;
mod listeners;
mod notices;
mod placing;
mod pressure;
mod rejections;
mod rig;
mod serving;
mod shapes;
mod status;
mod telling;
mod traces;
mod websocket;
mod wire;
