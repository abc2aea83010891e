use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// The report of a drain: the requests that were aborted when its time was up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrainReport {
    /// Requests that were not finished in time. Empty if all were.
    pub aborted: Vec<Aborted>,
}

/// A request (or an upgraded connection) that was aborted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aborted {
    /// Method and path, such as `GET /proxy`.
    pub route: String,
    /// Time for which it had been under way, to a quarter of a second.
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

/// The state of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Serving,
    /// Like [`Draining`](Self::Draining), and the next version serves: clients may come back at
    /// once.
    HandingOver,
    /// No new connections; what is under way is finished.
    Draining,
    /// Aborts what is still under way.
    Ending,
}
