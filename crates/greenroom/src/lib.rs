//! A web application server in which a slow request never holds up a fast one.
//!
//! An axum application changes one line:
//!
//! ```no_run
//! use axum::{Router, routing::get};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let app = Router::new().route("/hello", get(|| async { "Hello, world!" }));
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:5000").await?;
//! greenroom::serve(listener, app).await?; // was: axum::serve(listener, app).await?;
//! # Ok(())
//! # }
//! ```
//!
//! [`serve`] takes what `axum::serve` takes: a `Router`, a make-service such as that of
//! `into_make_service_with_connect_info`, or any cloneable tower service of
//! `http::Request<axum::body::Body>`. For several addresses, Unix sockets, limits and drain there
//! is [`Server::builder`].
//!
//! # Where a handler runs
//!
//! There is one loop per core: a thread with a tokio runtime of its own (a `LocalRuntime`). A
//! handler runs on the loop that accepted its connection. So `tokio::spawn`, timers, sockets and
//! client pools work as they do anywhere on tokio, with one exception:
//! `tokio::task::block_in_place` needs a multi-threaded runtime and panics. What one loop's
//! runtime opened is best used on that loop; what was opened on the runtime that called [`serve`]
//! works too, driven from there.

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}

mod application;
mod body_limit;
mod serve;
mod server;
mod signal;

pub use application::{Application, IncomingConnection, OfConnections, OfRequests};
pub use axum::body::Body;
pub use body_limit::{BodyLimit, BodyLimited};
pub use greenroom_server::{
    Address, AddressError, BodyError, Cut, DrainReport, Error, Handle, Limits, ServerBuilder,
};
pub use serve::{Serve, serve};
pub use server::Server;
pub use signal::end_on_signals;
