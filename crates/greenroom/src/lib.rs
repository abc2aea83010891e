//! A web application server in which a slow request never holds up a fast one.
//!
//! An axum application changes one line:
//!
//! ```toml
//! [dependencies]
//! axum = "0.8"
//! greenroom = "0.1" # features: "admin", "bus", "cluster", "proxy", "psgi"
//! tokio = { version = "1", features = ["macros", "net", "rt-multi-thread"] }
//! ```
//!
//! ```no_run
//! use axum::{Router, routing::get};
//!
//! #[tokio::main]
//! async fn main() -> std::io::Result<()> {
//!     let app = Router::new().route("/hello", get(|| async { "Hello, world!" }));
//!     let listener = tokio::net::TcpListener::bind("127.0.0.1:5000").await?;
//!     greenroom::serve(listener, app).await // was: axum::serve(listener, app).await
//! }
//! ```
//!
//! [`serve`] takes what `axum::serve` takes: any listener of axum's trait; and a `Router`, a
//! make-service such as that of `into_make_service_with_connect_info`, or any cloneable tower
//! service of `http::Request<axum::body::Body>`; and beyond axum, any [`App`] of
//! `greenroom-server`. Limits, drain and the rest are set on [its result](Serve). For several
//! addresses, signals and the rest of what a process needs there is [`Server::builder`].
//!
//! Features: `admin` is a page for operators, status and metrics at an address of their own, `bus`
//! topics in the process and through Redis, `cluster` actors on several machines, `proxy` a reverse
//! proxy, `psgi` Perl applications. None is on by default.
//!
//! # Where a handler runs
//!
//! There is one loop per core: a thread with a tokio runtime of its own (a `LocalRuntime`), which
//! accepts connections and reads and writes for them. The application is placed by
//! [`Placement::auto`]: each route begins on a [`Stage`], a bounded queue with threads of its own,
//! and moves to the loop once it has proven short. A handler that computes or blocks holds up no
//! other; a request that would wait too long for its turn gets a 503 at once. To place a route by
//! hand, give it a [`Placement`] of its own: the inner one decides, except behind `Placement::on`.
//!
//! On the loop and on a stage, a handler is polled within the runtime of the loop that accepted its
//! connection. So `tokio::spawn`, timers, sockets and client pools work as they do anywhere on
//! tokio, with two exceptions: `tokio::task::block_in_place` needs a multi-threaded runtime and
//! panics, and `spawn_local` panics on a stage. A task of `tokio::spawn` runs on the loop, and the
//! log warns of it if it holds up the loop. Sockets and timers that one loop's runtime opened are
//! best used on that loop; those opened on the runtime that called [`serve`] work too, driven from
//! there.
//!
//! The routes of a `Router` and of its make-services are told apart by method and matched path. Of
//! another service, be it a layer around a router, only the method and the path are known, and the
//! first segment of the path is taken; to have the router's routes told apart, give the router
//! `.layer(Placement::auto())`. An [`App`] stays on the loops, and so does an application that is
//! not `Send`, as [`OnLoops`]; the server says so in its log when it starts.
//!
//! # The length of bodies
//!
//! As with `axum::serve`, the application decides: axum's extractors take 2 MB unless
//! [`DefaultBodyLimit`](axum::extract::DefaultBodyLimit) says otherwise, and
//! `tower_http::limit::RequestBodyLimitLayer` limits every reader of the body behind it. The server
//! itself holds 128 KiB of a body at most, whatever its length. [`Limits::body_bytes_max`] is a cap
//! on top of that, for all routes: beyond it the body yields `http_body_util::LengthLimitError`, as
//! that of the layer does, so extractors respond with 413.
//!
//! A client must keep a pace with its body until the response begins; [`SlowBodies`] is for routes
//! that take a stream of messages for long before they respond.
//!
//! # Clients
//!
//! Work that is submitted to a stage for a request is its client's, and stages are fair between
//! clients: see [`ServerBuilder::client_key`].

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/draining.md")]
mod draining {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-axum.md")]
mod from_axum {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/limits.md")]
mod limits {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/rejections.md")]
mod rejections {}

#[cfg(all(doctest, feature = "proxy"))]
#[doc = include_str!("../../../docs/reverse-proxy.md")]
mod reverse_proxy {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/start.md")]
mod start {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/upgrades.md")]
mod upgrades {}

/// Actors: state with a mailbox, under supervision. See [`greenroom_actor`].
pub mod actor {
    pub use greenroom_actor::greenroom_messages as messages;
    pub use greenroom_actor::*;
}

#[cfg(feature = "bus")]
pub use greenroom_bus as bus;

#[cfg(feature = "cluster")]
pub use greenroom_cluster as cluster;

#[cfg(feature = "proxy")]
pub use greenroom_proxy as proxy;
#[cfg(feature = "psgi")]
pub use greenroom_psgi as psgi;

mod accepting;
#[cfg(feature = "admin")]
mod admin;
mod application;
mod client_addr;
mod loop_watch;
mod notices;
mod placing;
mod readiness;
mod rejection;
mod serve;
mod server;
mod slow_bodies;
mod status;

#[cfg(feature = "admin")]
pub use admin::{
    AdminActions, AdminToken, AdminTokenError, InstallMetricsError, METRICS, Metric, MetricKind,
    install_metrics,
};
pub use application::{IncomingConnection, IncomingStream, IntoApp, OnLoops};
pub use axum::body::Body;
pub use client_addr::{ClientAddr, ClientAddrUnknown};
pub use greenroom_server::{
    Aborted, AcceptedStream, Acceptor, Address, AddressError, App, BodyError, BodyPace, BoxError,
    ConnectionInfo, DrainReport, DrainingVersion, Error, FORWARDED_ENTRIES_MAX, FileRest,
    FinishedRequest, FinishedSpan, ForwardedFor, ForwardedHeader, HasSettings, InformationalError,
    InheritedSocket, Limits, LoopStatus, LoopWatch, OpenSpan, PROXY_HEADER_BYTES_MAX, Pressure,
    REJECTION_BYTES_MAX, REQUEST_ID_BYTES_MAX, Rejection, RejectionBody, RejectionDetail,
    RequestBody, RequestHandle, RequestId, RequestMetrics, RequestObserver, SPAN_TEXT_BYTES_MAX,
    SPANS_MAX, ServerTiming, Setting, SettingError, SharedService, Span, SpanEvent, SpanKind,
    SpanLink, SpanValue, TRACE_STATE_BYTES_MAX, TRACE_STATE_MEMBERS_MAX, TRACED_TEXT_BYTES_MAX,
    TraceContext, TraceParents, TrustedProxies, TrustedProxy, TrustedProxyError, Unit,
    UpgradeOutcome, UpgradeProgram, UpgradeRecord, UpgradeResult, UpgradeState, UpgradeStatus,
    UpgradeWay, Upgrades, known_method, raise_descriptor_limit, upgrade_marker, upgrade_on_signal,
};
#[cfg(any(feature = "tls", feature = "tls-ring"))]
pub use greenroom_server::{
    CertificateStatus, ClientCertificates, Tls, TlsBuilder, TlsError, TlsInfo, client_tls, rustls,
};
pub use greenroom_stage::{
    BuildError, Client, ClientKey, Error as StageError, JoinHandle, OnStage, Panicked, Placed,
    Placement, Priority, Quantiles, Reason, Rejected, RouteStatus, Share, Sheds, Stage,
    StageBuilder, StageRejection, StageSettings, StageStatus, StatusScope, Threads,
};
pub use notices::{Draining, Informational};
pub use readiness::Readiness;
pub use rejection::{TextRejections, WithTextRejections};
pub use serve::{Serve, serve};
pub use server::{Handle, Server, ServerBuilder, shutdown_on_signals};
pub use slow_bodies::{SlowBodies, WithSlowBodies};
pub use status::{Status, status_handler};
