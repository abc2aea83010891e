//! The kinds of applications that can be served, and their conversion to an [`App`].

mod adapted;
mod connection;
mod for_client;
mod incoming;
mod length_limit;
mod on_loops;
mod per_connection;

pub use connection::IncomingConnection;
pub use incoming::IncomingStream;
pub(crate) use incoming::Introduction;
pub use on_loops::OnLoops;

use std::any::type_name;
use std::convert::Infallible;

use axum::Router;
use axum::body::Body;
use axum::extract::connect_info::{Connected, IntoMakeServiceWithConnectInfo};
use axum::serve::Listener;
use bytes::Bytes;
use greenroom_server::{App, BoxError, ConnectionInfo};
use greenroom_stage::ClientKey;
use http::{Request, Response};
use tower_service::Service;

use crate::placing::{ByRoute, Routed, by_route, by_route_of, place};
use adapted::Adapted;
use per_connection::Made;

/// An application that can be served: cloneable tower services of `Request<Body>`, axum's `Router`
/// among them; make-services, which give each connection a service of its own, such as those of
/// `into_make_service_with_connect_info`; and applications that decide themselves where they run:
/// every [`App`] and [`OnLoops`].
///
/// The type parameter `Kind` only tells them apart; the compiler infers it. `L` is the listener,
/// for make-services whose type implements [`Connected<IncomingStream<'_, L>>`](IncomingStream).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be served",
    label = "no router, service or make-service that a server takes",
    note = "a handler is served as `handler.into_make_service()`, with \
            `use axum::handler::HandlerWithoutStateExt`, or as a route: \
            `Router::new().route(\"/\", get(handler))`",
    note = "a `Router<S>` lacks its state: give it by `.with_state(state)`",
    note = "a service is `Clone + Send + 'static` and takes `http::Request<axum::body::Body>`; \
            its futures, bodies and errors are `Send`, because they may go to a stage",
    note = "what is not `Send` is served as `greenroom::OnLoops(application)`, and stays on the \
            loops",
    note = "a make-service of your own takes `greenroom::ConnectionInfo`",
    note = "a type of your own in `ConnectInfo` implements \
            `Connected<greenroom::IncomingStream<'_, {L}>>`, or \
            `Connected<greenroom::IncomingConnection>` for every listener"
)]
pub trait IntoApp<Kind, L = OwnListener>: Sized + 'static {
    /// The application for the server's loops.
    type App: App;

    /// Converts it. The client of each request is found by `client_key`.
    fn into_app(self, client_key: Option<ClientKey>) -> Self::App;

    /// Returns the look at each connection that the listener accepts, if there is one.
    #[doc(hidden)]
    fn introduction(&self) -> Option<Introduction<L>>
    where
        L: Listener,
    {
        None
    }

    /// Returns the name of a type that stays on the loops, of which the server warns.
    #[doc(hidden)]
    fn unplaced(&self) -> Option<&'static str> {
        None
    }
}

/// The listeners that a server has bound itself.
#[derive(Debug)]
pub enum OwnListener {}

/// Marks services of requests.
#[derive(Debug)]
pub enum OfRequests {}

/// Marks services that make a service for each connection.
#[derive(Debug)]
pub enum OfConnections {}

/// Marks make-services that get the peer's address, by axum's
/// `into_make_service_with_connect_info`.
#[derive(Debug)]
pub enum OfConnectInfo {}

/// Marks make-services that get the streams of their listener.
#[derive(Debug)]
pub enum OfIncomingStreams {}

/// Marks types that implement [`App`].
#[derive(Debug)]
pub enum OfApps {}

/// Marks [`OnLoops`] around this kind.
#[derive(Debug)]
pub struct OfLoops<Kind>(Kind);

impl<S, B, L> IntoApp<OfRequests, L> for S
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError> + Send,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type App = Adapted<Routed<S>>;

    fn into_app(self, client_key: Option<ClientKey>) -> Self::App {
        Adapted::new(place(self), client_key)
    }
}

impl<M, S, B, L> IntoApp<OfConnections, L> for M
where
    M: Service<ConnectionInfo, Response = S, Error = Infallible> + Clone + Send + 'static,
    M::Future: 'static,
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError> + Send,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type App = Made<M, ConnectionInfo, ByRoute>;

    fn into_app(self, client_key: Option<ClientKey>) -> Self::App {
        Made::new(self, by_route(), client_key)
    }
}

impl<S, B, C, L> IntoApp<OfConnectInfo, L> for IntoMakeServiceWithConnectInfo<S, C>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError> + Send,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    C: Connected<IncomingConnection>,
{
    type App = Made<Self, IncomingConnection, ByRoute>;

    fn into_app(self, client_key: Option<ClientKey>) -> Self::App {
        let placed = by_route_of::<IntoMakeServiceWithConnectInfo<Router, C>>(&self);
        Made::new(self, placed, client_key)
    }
}

impl<A: App, L> IntoApp<OfApps, L> for A {
    type App = A;

    fn into_app(self, _: Option<ClientKey>) -> A {
        self
    }

    fn unplaced(&self) -> Option<&'static str> {
        (!self.places_itself()).then(type_name::<A>)
    }
}
