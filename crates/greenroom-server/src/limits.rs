use std::time::Duration;

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
    /// Time in which a client must take at least one byte of what is sent to it; else the
    /// connection is cut. Over HTTP/2 a stream whose client takes nothing of its response is reset, and
    /// the connection is closed if nothing of any was taken and no other stream is open. Default: 30 s.
    pub write_timeout: Duration,
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
            connections_max: connections_default(),
            streams_max: 100,
            output_bytes_max: 262_144,
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
}

/// The rest of the descriptors is for listeners, logs, files and upstream connections.
fn connections_default() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let descriptors = limit.and_then(|number| usize::try_from(number).ok());
    descriptors.map_or(usize::MAX, |number| number / 10 * 9)
}
