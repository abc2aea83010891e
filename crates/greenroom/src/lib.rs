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
//! `http::Request<axum::body::Body>`; and what axum has no word for, any [`App`] of
//! `greenroom-server`. For several addresses, Unix sockets, limits and drain there is
//! [`Server::builder`].
//!
//! # Where a handler runs
//!
//! There is one loop per core: a thread with a tokio runtime of its own (a `LocalRuntime`), which
//! accepts connections and reads and writes for them. What is served is placed by
//! [`Placement::auto`]: each route begins on a [`Stage`], a bounded queue with threads of
//! its own, and moves to the loop once it has proven short. A handler that computes or blocks
//! holds up nobody; one that would wait too long for its turn is answered with 503 at once. To
//! place a route by hand, give it a [`Placement`] of its own: the inner one decides.
//!
//! Wherever it runs, a handler is polled within the runtime of the loop that accepted its
//! connection. So `tokio::spawn`, timers, sockets and client pools work as they do anywhere on
//! tokio, with two exceptions: `tokio::task::block_in_place` needs a multi-threaded runtime and
//! panics, and `spawn_local` panics on a stage. What `tokio::spawn` starts runs on the loop, and the
//! log warns of it if it holds up the loop. What one loop's runtime opened is best used on that loop;
//! what was opened on the runtime that called [`serve`] works too, driven from there.
//!
//! The routes of a `Router` and of its make-services are told apart by method and matched path. Of
//! another service, be it a layer around a router, nothing is known but the method and the path,
//! whose first segment is taken; to have the router's routes told apart, give the router
//! `.layer(Placement::auto())`. An [`App`] stays on the loops, and so does what is not `Send`, as
//! [`OnLoops`]; the server says so in its log when it starts.
//!
//! What is submitted to a stage while a request is worked on is its client's, and stages are fair
//! between clients: see [`Server::client_key`].

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-axum.md")]
mod from_axum {}

/// Actors: state with a mailbox, under supervision. See [`greenroom_actor`].
pub mod actor {
    pub use greenroom_actor::messages_of_greenroom as messages;
    pub use greenroom_actor::*;
}

#[cfg(feature = "bus")]
pub use greenroom_bus as bus;

#[cfg(feature = "psgi")]
pub use greenroom_psgi as psgi;

mod application;
mod body_limit;
mod descriptors;
mod loop_watch;
#[cfg(feature = "operators")]
mod operators;
mod placing;
mod serve;
mod server;
mod signal;
mod status;

pub use application::{
    Application, IncomingConnection, LocalApplication, OfApps, OfConnectInfo, OfConnections,
    OfLoops, OfRequests, OnLoops,
};
pub use axum::body::Body;
pub use body_limit::{BodyLimit, BodyLimited};
pub use descriptors::raise_descriptor_limit;
pub use greenroom_server::{
    Address, AddressError, App, BodyBytesMax, BodyError, BoxError, ConnectionInfo, Cut,
    DrainReport, Error, Handle, Limits, LoopStatus, LoopWatch, NotPossible, Pressure, RequestBody,
    ServerBuilder, Shared, send_informational,
};
pub use greenroom_stage::{
    BuildError, Client, ClientKey, Error as StageError, Importance, OnStage, Panicked, Placed,
    Placement, Quantiles, Reason, Rejected, RouteStatus, Share, Sheds, Spawned, Stage,
    StageBuilder, StageStatus, Threads,
};
#[cfg(feature = "operators")]
pub use operators::{CountError, Operators, Serving, count};
pub use serve::{Serve, serve};
pub use server::Server;
pub use signal::end_on_signals;
pub use status::{Status, status, status_handler};
