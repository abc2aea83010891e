use std::time::Duration;

use crate::memory::memory_default;

/// What one client may ask of the server, and for how long it may keep it waiting.
///
/// All but `body_bytes_max` are on by default, and safe on the open internet. How long a body may be
/// is for the application to say, which knows what it keeps of one: the server keeps 128 KiB at most.
///
/// No time-out comes early. Those of a
/// connection are kept by a clock of 250 ms, so they come up to 500 ms late: 1 s is 1 to 1.25 s, and
/// 1.1 s is 1.25 to 1.5 s.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request's head: 431 beyond. Default: 65,536.
    pub head_bytes_max: usize,
    /// Header fields of a request: 431 beyond. Default: 100, at most
    /// [`greenroom_http::FIELDS_CEILING`].
    pub fields_max: usize,
    /// Bytes of the request target: 414 beyond. Default: 8,192.
    pub target_bytes_max: usize,
    /// Bytes of a request's body, whatever the application allows: its body yields
    /// [`BodyError::TooLarge`](crate::BodyError) beyond, and the application responds to that.
    /// Default: `u64::MAX`, no limit.
    pub body_bytes_max: u64,
    /// Time from the first byte of a head (on a new connection: from its being accepted) to its
    /// last: 408 beyond. Default: 10 s.
    pub head_timeout: Duration,
    /// Time that a client may take for a body before its rate counts. Default: 10 s.
    pub body_grace: Duration,
    /// Bytes a second that a body must bring once `body_grace` is over: 408 if it brings fewer.
    /// Only the time in which the application waits for the client counts, and only until the response
    /// begins; a route can [lift](crate::BodyPace) the limit. Default: 1,000; 0 for no limit.
    pub body_rate_min: u64,
    /// Time that a connection may be idle between two requests before it is closed. Default: 75 s.
    ///
    /// It must be longer than the time for which a proxy in front keeps idle connections: of two that
    /// close at the same time, the proxy may be sending a request on a connection that the server is
    /// closing, and its client gets a 502. The default outlasts the 60 s of AWS' load balancers
    /// and of nginx' `upstream`. Behind Google's application load balancers, which keep theirs for
    /// 600 s, set 620 s.
    pub keep_alive_timeout: Duration,
    /// Time in which a client must take at least one byte of what is sent to it, and by which it may be
    /// behind `response_rate_min`; else the connection is reset. Over HTTP/2 a stream whose client does not
    /// open its window is reset, and the connection is closed if nothing of any was taken and no other stream
    /// is open, or if it is the connection's window that is not opened. Default: 30 s.
    pub write_timeout: Duration,
    /// Bytes a second that a client must take of what is sent to it. Only the time counts in which
    /// there is something to send and the system takes no more of it, so events and long polls that send
    /// little are not concerned. Each byte taken makes up for some of that time; whoever is behind by
    /// `write_timeout` is reset. Default: 1,000; 0 for no limit.
    ///
    /// A client that takes 1,200 bytes each 1.5 s, 800 a second, loses 0.2 s a second and is reset after
    /// 150 s; one that takes 1,000 a second may take any time. What it has taken before is no
    /// credit: after a gigabyte, too, it may stop for 30 s.
    ///
    /// Over HTTP/2 it holds for each stream while that waits for its own window; while all wait for the
    /// connection's window or the system, it is the connection that must take as much, over all its streams.
    /// Tunnels have no rate.
    pub response_rate_min: u64,
    /// Connections at once, over all loops. At the limit, accepting pauses and the connections
    /// that are idle longest are closed. Default: 90 % of the process' descriptor limit.
    pub connections_max: usize,
    /// Streams that a client may have open at once on one HTTP/2 connection; those beyond are refused
    /// by the protocol. Default: 100, the least that RFC 9113, 6.5.2 recommends.
    pub streams_max: u32,
    /// Bytes of responses that an HTTP/2 connection holds because its client does not take them, over
    /// all its streams: 32 KiB a stream, and 1 KiB for each even where others hold the rest. The
    /// application is asked for more when the client has taken some. What it has made by then counts for
    /// no more than what was passed on of it: a body that is one piece is in memory as a whole.
    /// Default: 262,144.
    pub output_bytes_max: usize,
    /// Connections at once of one address: of one of IPv4, or of the /64 of one of IPv6, which a client has
    /// for itself. Beyond it, newcomers get 429 and are closed, unread. Default: `usize::MAX`, no limit,
    /// since behind one address there may be a whole office, or a proxy. On the open internet, without a proxy
    /// in front: 100, say.
    ///
    /// Trusted proxies have no limit, nor have Unix sockets. Where the PROXY protocol announces a
    /// client, it is the client's address that counts.
    pub address_connections_max: usize,
    /// Requests a second of one address, as of `address_connections_max`; of a request that a
    /// [trusted proxy](crate::TrustedProxies) sent, of the client that it tells. Beyond it (and beyond
    /// `address_requests_burst`): 429 with `Retry-After`, and the connection is kept. Default: 0, no limit.
    ///
    /// 65,536 addresses are remembered at a time, in 2 MiB. With more at once some are limited less.
    pub address_requests_rate_max: u32,
    /// Requests at once by which an address may be ahead of `address_requests_rate_max`, at least 1.
    /// Default: 200, more than a browser asks for when it opens a page. With 50 a second: 200 at once, then one each
    /// 20 ms; 4 s without any, and there are 200 again.
    pub address_requests_burst: u32,
    /// Bytes that all connections may hold together while they wait: heads and bodies of requests
    /// that are not answered yet, as far as they are in the server's hands, input that is no whole request yet, and
    /// output that clients do not take. Beyond it a request is declined with 503 and `Retry-After`, before the application sees
    /// it, and its connection is closed (over HTTP/2 it goes on); what is under way goes on. Default: a quarter of the memory of the
    /// machine, or of the container's (cgroup v2).
    ///
    /// One connection of HTTP/1 holds up to some 320 KiB: with 1 GiB, 3,300 of them may do their worst. One of
    /// HTTP/2 holds up to 1 MiB of bodies, `output_bytes_max` of responses, and a head for each stream.
    /// What the application makes of a request, such as a body that it collects, is its own.
    pub memory_max: usize,
    /// Time that what is ready may wait for its loop. Beyond half of it, if that lasts for
    /// `loop_lag_standing`, the loop accepts new connections slowly, and the application is told
    /// ([`Pressure`](crate::Pressure)); newcomers that wait for twice as long (40 ms) are refused with
    /// 503 once they have done so for `loop_lag_standing`. Default: 20 ms, at least 1 ms;
    /// `Duration::MAX` for no limit.
    pub loop_lag_max: Duration,
    /// Time for which what is ready must have waited for too long before anything is refused for it:
    /// a burst that is over sooner is served whole. Overload that comes back within the same time
    /// after it ended is shed at once. Default: 1 s; zero sheds after two probes of the lag in a row,
    /// `Duration::MAX` never.
    pub loop_lag_standing: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes_max: 65_536,
            fields_max: 100,
            target_bytes_max: 8_192,
            body_bytes_max: u64::MAX,
            head_timeout: Duration::from_secs(10),
            body_grace: Duration::from_secs(10),
            body_rate_min: 1_000,
            keep_alive_timeout: Duration::from_secs(75),
            write_timeout: Duration::from_secs(30),
            response_rate_min: 1_000,
            connections_max: connections_default(),
            streams_max: 100,
            output_bytes_max: 262_144,
            address_connections_max: usize::MAX,
            address_requests_rate_max: 0,
            address_requests_burst: 200,
            memory_max: memory_default(),
            loop_lag_max: Duration::from_millis(20),
            loop_lag_standing: Duration::from_secs(1),
        }
    }
}

impl Limits {
    pub(crate) fn http(&self) -> greenroom_http::Limits {
        greenroom_http::Limits {
            head_bytes_max: self.head_bytes_max,
            fields_max: self.fields_max,
            target_bytes_max: self.target_bytes_max,
            ..greenroom_http::Limits::default()
        }
    }

    /// For how long the system keeps trying to send to a client that takes nothing.
    pub(crate) fn untaken_max(&self) -> Duration {
        self.write_timeout.saturating_mul(2).max(UNTAKEN_MIN)
    }
}

/// The system gives up a client that takes nothing no sooner than this, and no sooner than after twice
/// `write_timeout`: the server, which tells the client by a reset, comes first.
const UNTAKEN_MIN: Duration = Duration::from_mins(1);

/// The rest of the descriptors is for listeners, logs, files and upstream connections.
fn connections_default() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let descriptors = limit.and_then(|number| usize::try_from(number).ok());
    descriptors.map_or(usize::MAX, |number| number / 10 * 9)
}
