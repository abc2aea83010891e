use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// What a server did last: whom it cut off when its drain ran out of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrainReport {
    /// The requests that were not finished in time. Empty if all were.
    pub aborted: Vec<Aborted>,
}

/// A request (or an upgraded connection) that was cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aborted {
    /// Method and path, such as `GET /proxy`.
    pub route: String,
    /// How long it had been under way, to a quarter of a second.
    pub age: Duration,
    /// The client; `None` on a Unix socket.
    pub peer: Option<SocketAddr>,
}

impl fmt::Display for Aborted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} after {:.1?}", self.route, self.age)?;
        match self.peer {
            Some(peer) => write!(out, " from {peer}"),
            None => write!(out, " from a Unix socket"),
        }
    }
}

/// How a server stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Serving,
    /// No new connections; what is under way is finished.
    Draining,
    /// What is still under way is cut off.
    Ending,
}
