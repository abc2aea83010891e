use std::any::Any;
use std::error::Error;
use std::net::SocketAddr;
use std::panic::Location;
use std::sync::Arc;

use http::{Request, Response};
use tower_service::Service;

use crate::{Address, Pressure, RequestBody};

/// Any error, as tower and hyper pass them on.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The two ends of a connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// The client's address; `None` on a Unix socket.
    pub peer: Option<SocketAddr>,
    /// The address that it connected to.
    pub local: Address,
    /// A value that an [`Acceptor`](crate::Acceptor) of the application's own attached; `None`
    /// from the server's own listeners.
    pub attached: Option<Arc<dyn Any + Send + Sync>>,
    /// The values that the client and the server have agreed upon for TLS; `None` without it.
    #[cfg(feature = "tls")]
    pub tls: Option<Arc<crate::TlsInfo>>,
}

impl ConnectionInfo {
    /// Describes a connection between these ends, without anything attached.
    #[must_use]
    pub fn new(peer: Option<SocketAddr>, local: Address) -> Self {
        Self {
            peer,
            local,
            attached: None,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }
}

/// An application: for each connection, a service that responds to its requests.
///
/// A clone of the application goes to each loop; a service is made for each connection, on the
/// loop that serves it. Services, futures and bodies never leave their loop, so they need not be
/// `Send`.
pub trait App: Clone + Send + 'static {
    /// The body of a response.
    type Body: http_body::Body<Error: Into<BoxError>> + 'static;
    /// The service for the requests of one connection.
    type Service: Service<
            Request<RequestBody>,
            Response = Response<Self::Body>,
            Error: Into<BoxError>,
            Future: 'static,
        > + Clone
        + 'static;

    /// Returns the service for a new connection.
    fn connect(&self, info: &ConnectionInfo) -> Self::Service;

    /// Handles a change of the loop's pressure. Called on the loop's thread, to the loop's clone,
    /// as soon as it is known; every loop begins with [`Pressure::None`]. It should return at once.
    fn pressure(&self, _pressure: Pressure) {}

    /// Returns a watch for the loop of this name, which begins now. Called on the loop's thread,
    /// within its runtime; not by [`Server::serve_local`](crate::Server::serve_local), whose
    /// runtime is its caller's. By default there is none.
    fn watch_loop(&self, _name: &str) -> Option<Arc<dyn LoopWatch>> {
        None
    }

    /// Returns `true` if the application itself runs beside the loops what takes long. Of one that
    /// says no, `greenroom` warns at the start that it can hold up its loops.
    fn places_itself(&self) -> bool {
        false
    }
}

/// Follows what a loop does, so that another thread can tell when it makes no progress.
///
/// Called on the loop's thread at every turn, so each method should take nanoseconds.
pub trait LoopWatch: Send + Sync + 'static {
    /// The loop has nothing to do, and waits for the system.
    fn parks(&self);

    /// The system had something for it, and it goes on.
    fn unparks(&self);

    /// A connection is polled, and with it what the application does inline.
    fn connection_begins(&self);

    /// The connection's poll has ended.
    fn connection_ends(&self);

    /// A task that was spawned there is polled. Told only in builds with `--cfg tokio_unstable`.
    fn task_begins(&self, _spawned_at: &'static Location<'static>) {}

    /// The loop has ended, and makes no progress any more. The watch may be kept for its numbers.
    fn ends(&self) {}

    /// Returns the number of times that the loop was held up by something other than a placed
    /// route.
    fn stalls(&self) -> u64;
}

/// An [`App`] that gives every connection a clone of the same service.
#[derive(Clone, Copy, Debug)]
pub struct SharedService<S>(pub S);

impl<S, B> App for SharedService<S>
where
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: 'static,
    B: http_body::Body<Error: Into<BoxError>> + 'static,
{
    type Body = B;
    type Service = S;

    fn connect(&self, _info: &ConnectionInfo) -> S {
        self.0.clone()
    }
}
