//! Stages, placement, admission and a watchdog: a slow request never holds up a fast one.
//!
//! Works with any tower service on tokio, under plain `axum::serve` too:
//!
//! ```no_run
//! use axum::{Router, routing::get};
//! use greenroom_stage::Placement;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let app = Router::new()
//!     .route("/hello", get(|| async { "Hello, world!" }))
//!     .route("/legacy", get(|| async {
//!         std::thread::sleep(std::time::Duration::from_secs(2)); // holds up nobody else
//!         "done"
//!     }))
//!     .layer(Placement::auto());
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:5000").await?;
//! axum::serve(listener, app).await?;
//! # Ok(())
//! # }
//! ```
//!
//! - A [`Stage`] is a bounded queue and its threads. It rejects early what it could not do in time
//!   ([`admission`]), and adds threads for work that blocks, not for work that computes.
//! - A [`Placement`] says where a route's handler runs: on the loop, on a stage, or where it proves
//!   to belong ([`placement`]).
//! - The watchdog reports a handler that holds up a loop, and moves its route, while it still runs.
//! - [`status`] shows all of it.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

pub mod admission;
mod client;
mod controller;
pub mod fair;
mod loop_shedding;
pub mod placement;
mod proc;
mod raw;
mod run_delay;
pub mod scope;
mod stage;
mod status;
mod thread_state;
mod watchdog;

pub use client::{Client, ClientKey, IPV6_CLIENT_BITS, KeyOfClient, NAME_BYTES_SHOWN, WorkingFor};
pub use greenroom_quantiles::Quantiles;
pub use loop_shedding::shed_on_this_loop;
pub use placement::{Placed, Placement, RouteStatus, before_stages};
pub use scope::{StatusScope, find_scopes_by};
pub use stage::{
    BULK_WAIT_DIVISOR, BuildError, CRITICAL_RESERVE_DIVISOR, Error, JoinHandle, OnStage, Panicked,
    Priority, Reason, Rejected, Share, Sheds, Stage, StageBuilder, StageRejection, StageSettings,
    StageStatus, Threads,
};
pub use status::{Status, status};
pub use watchdog::{HANG, STALL, WARNING_PAUSE, WatchedLoop, watch_this_loop};
