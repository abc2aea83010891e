//! One event loop per core, and the connections that they serve.
//!
//! A [`Server`] owns listeners and threads. Each thread is a *loop*: a tokio runtime of its own, a
//! listening socket of its own (`SO_REUSEPORT`), and connections that never leave it. What is
//! served is an [`App`]: any tower service of `http::Request<RequestBody>`.
//!
//! Most applications use this through the crate `greenroom`, which takes axum's routers.

#[cfg(all(feature = "http3", not(any(feature = "aws-lc-rs", feature = "ring"))))]
compile_error!("the feature http3 needs the feature aws-lc-rs or ring");

mod access;
mod address;
mod addresses;
mod app;
mod binding;
mod body;
mod challenges;
mod connection;
mod descriptors;
mod drain;
mod draining;
mod error;
mod event_loop;
mod failure;
mod handle;
mod handover;
mod informational;
mod limits;
mod listen;
mod memory;
mod proxies;
#[cfg(feature = "http3")]
mod quic;
mod rejection;
mod request_handle;
mod request_metrics;
mod server;
mod settings;
mod signals;
mod strict;
mod threads;
#[cfg(feature = "tls")]
mod tls;
mod upgrade;

pub use access::{
    FinishedRequest, REQUEST_ID_BYTES_MAX, RequestId, RequestObserver, ServerTiming,
    TRACE_STATE_BYTES_MAX, TRACE_STATE_MEMBERS_MAX, TRACED_TEXT_BYTES_MAX, TraceContext,
    TraceParents,
};
pub use address::{Address, AddressError};
pub use app::{App, BoxError, ConnectionInfo, LoopWatch, SharedService};
pub use body::{BodyError, BodyPace, RequestBody};
pub use descriptors::raise_descriptor_limit;
pub use drain::{Aborted, DrainReport};
pub use draining::Draining;
pub use error::Error;
pub use event_loop::{LoopStatus, Pressure};
pub use greenroom_http::FieldNames;
pub use greenroom_quantiles::Quantiles;
pub use greenroom_settings::{HasSettings, Setting, SettingError, Unit};
pub use greenroom_timing::{
    FileRest, FinishedSpan, OpenSpan, SPAN_TEXT_BYTES_MAX, SPANS_MAX, Span, SpanEvent, SpanKind,
    SpanLink, SpanValue, known_method,
};
pub use handle::Handle;
pub use informational::InformationalError;
pub use limits::Limits;
pub use listen::{AcceptedStream, Acceptor, InheritedSocket};
pub use proxies::{
    FORWARDED_ENTRIES_MAX, ForwardedFor, ForwardedHeader, PROXY_HEADER_BYTES_MAX, TrustedProxies,
    TrustedProxy, TrustedProxyError,
};
pub use rejection::{REJECTION_BYTES_MAX, Rejection, RejectionBody, RejectionDetail};
pub use request_handle::RequestHandle;
pub use request_metrics::{ActiveRequests, REQUEST_SECONDS, RequestMetrics, RequestSeries};
#[cfg(feature = "tls")]
pub use rustls;
pub use server::{Server, ServerBuilder};
pub use signals::shutdown_on_signals;
#[cfg(feature = "tls")]
pub use tls::{
    CertificateStatus, ClientCertificates, Tls, TlsBuilder, TlsError, TlsInfo, client_tls,
};
pub use upgrade::{
    DrainingVersion, UpgradeOutcome, UpgradeProgram, UpgradeRecord, UpgradeResult, UpgradeState,
    UpgradeStatus, UpgradeWay, Upgrades, upgrade_marker, upgrade_on_signal,
};
