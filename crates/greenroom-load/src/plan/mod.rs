//! The plan of a run: requests, targets and times.

mod pace;
mod paths;
mod request;
mod target;

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use pace::{Arrivals, Pace, PaceError, Phase, Ramp, Schedule, rate};
pub use paths::{Paths, PathsError};
pub use request::RequestTemplate;
pub(crate) use request::USER_AGENT;
pub use target::{Place, Scheme, Target, TargetError};

/// A whole run: one or more streams of requests that begin together.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The streams, at least one, each with statistics of its own; the report is about the first.
    pub streams: Vec<StreamPlan>,
    /// The interval of progress reports and of the time line's points, longer than 0. Default: 1 s.
    pub interval: Duration,
}

/// One stream of requests.
#[derive(Clone, Debug)]
pub struct StreamPlan {
    /// Its name in reports.
    pub name: String,
    /// The targets of requests, in turn by weight; at least one. With kept connections in a closed
    /// loop it is the connections that are shared out, of which each thread needs one for each
    /// server.
    pub targets: Vec<Target>,
    /// Paths that take turns in the place of that of the one target, across all threads and
    /// connections; `None`: its own.
    pub paths: Option<Arc<Paths>>,
    /// The request that is sent to each target.
    pub request: RequestTemplate,
    /// The times at which requests are sent.
    pub pace: Pace,
    /// The end of a closed loop; an open loop ends with its schedule.
    pub end: End,
    /// The protocol of the connections.
    pub protocol: Protocol,
    /// Closed loop: connections that send at once. Open loop: the most that may be open.
    pub connections: u32,
    /// True if a connection serves more than one request.
    pub keep_alive: bool,
    /// HTTP/1.1, closed loop: requests in flight on each connection. HTTP/2: streams on each.
    pub in_flight_max: u32,
    /// The time that a request may take from its sending (or connecting), before it counts as
    /// failed.
    pub timeout: Duration,
    /// Addresses that connections come from, in turn; empty leaves it to the kernel.
    pub sources: Vec<IpAddr>,
    /// Size of the sockets' buffers, in bytes; `None` leaves it to the kernel.
    pub window_bytes: Option<usize>,
    /// The TLS settings.
    pub tls: TlsOptions,
    /// Threads that make this stream's load, each with a share of its connections, at least one.
    pub threads: u32,
    /// Polls without pause instead of sleeping: exact to a few microseconds, and takes a core.
    pub spin: bool,
    /// Accepts responses whose length differs from the first one's.
    pub variable_length: bool,
    /// Requests of which each time is kept (`-g`), at 40 bytes each; those beyond are only
    /// counted.
    pub records_max: usize,
}

/// The end of a closed loop: the bound that is reached first. Requests in flight then are waited
/// for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// After so many requests were sent.
    pub requests: Option<u64>,
    /// After this time.
    pub duration: Option<Duration>,
}

/// The protocol spoken over a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1 (RFC 9112).
    Http1,
    /// HTTP/2 (RFC 9113): by ALPN over TLS, with prior knowledge else.
    Http2,
    /// WebSocket (RFC 6455): a request is a message, its response the next message.
    WebSocket,
}

/// The check of certificates, and this side's own certificate.
#[derive(Clone, Debug, Default)]
pub struct TlsOptions {
    /// Accepts any certificate. Default: no.
    pub insecure: bool,
    /// Further trusted authorities, a PEM file.
    pub authorities: Option<PathBuf>,
    /// This side's certificate and its key, one PEM file (ab's `-E`).
    pub identity: Option<PathBuf>,
    /// Sends no server name (ab's `-I`). Default: it is sent.
    pub without_sni: bool,
}

impl StreamPlan {
    /// Creates a stream with ab's defaults: one request, one connection, closed after it; 30 s
    /// time-out.
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self {
            name: target.to_string(),
            protocol: target.scheme.protocol(),
            targets: vec![target],
            paths: None,
            request: RequestTemplate::default(),
            pace: Pace::Closed,
            end: End {
                requests: Some(1),
                duration: None,
            },
            connections: 1,
            keep_alive: false,
            in_flight_max: 1,
            timeout: Duration::from_secs(30),
            sources: Vec::new(),
            window_bytes: None,
            tls: TlsOptions::default(),
            threads: 1,
            spin: false,
            variable_length: false,
            records_max: 0,
        }
    }

    /// Returns the time during which requests are sent, if that is bounded.
    #[must_use]
    pub fn duration(&self) -> Option<Duration> {
        match &self.pace {
            Pace::Closed => self.end.duration,
            Pace::Open(schedule) => Some(schedule.duration()),
        }
    }

    /// Returns true if requests are sent by schedule, not by responses.
    #[must_use]
    pub fn is_open_loop(&self) -> bool {
        matches!(self.pace, Pace::Open(_))
    }
}
