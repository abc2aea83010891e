//! What can be served, and how it becomes an [`App`].

mod adapted;
mod connection;
mod for_client;
mod incoming;
mod length_limit;
mod local;
mod on_loops;
mod per_connection;

pub use connection::IncomingConnection;
pub use incoming::{IncomingStream, Introduced, Introduction};
pub use local::LocalApplication;
pub use on_loops::{OfLoops, OnLoops};

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

use crate::placing::{ByRoute, Routed, by_route, by_route_of, place, say_unplaced};
use adapted::Adapted;
use per_connection::Made;

/// What a server can serve, and place: cloneable tower services of `Request<Body>`, axum's `Router`
/// among them ([`OfRequests`]), make-services, which give each connection a service of its own
/// ([`OfConnections`], [`OfConnectInfo`]), and what takes care itself of where it runs: every
/// [`App`] ([`OfApps`]) and [`OnLoops`].
///
/// The type parameter only tells them apart; the compiler finds it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be served and placed",
    label = "no router, service or make-service that a server takes",
    note = "a handler is served as `handler.into_make_service()`, with `use axum::handler::HandlerWithoutStateExt`, or as a route: `Router::new().route(\"/\", get(handler))`",
    note = "a `Router<S>` lacks its state: give it by `.with_state(state)`",
    note = "a service is `Clone + Send + 'static` and takes `http::Request<axum::body::Body>`; its futures, bodies and errors are `Send`, because they may go to a stage",
    note = "what is not `Send` is served as `greenroom::OnLoops(application)`, and stays on the loops",
    note = "a make-service of your own takes `greenroom::ConnectionInfo`",
    note = "a type of your own in `ConnectInfo` implements `Connected<greenroom::IncomingConnection>`"
)]
pub trait Application<Kind>: Sized + 'static {
    /// What the server's loops are given.
    type App: App;

    /// Turns this into it. Its requests are of the clients that the key says.
    fn into_app(self, client_key: Option<ClientKey>) -> Self::App;
}

/// What [`serve`](crate::serve()) can serve on a listener `L`: every [`Application`]
/// ([`OfAnyListener`]), and the make-services of axum whose type implements
/// [`Connected<IncomingStream<'_, L>>`](IncomingStream) for this very listener
/// ([`OfIncomingStreams`]).
///
/// The type parameter only tells them apart; the compiler finds it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be served",
    label = "no router, service or make-service that `serve` takes",
    note = "a handler is served as `handler.into_make_service()`, with `use axum::handler::HandlerWithoutStateExt`, or as a route: `Router::new().route(\"/\", get(handler))`",
    note = "a `Router<S>` lacks its state: give it by `.with_state(state)`",
    note = "a service is `Clone + Send + 'static` and takes `http::Request<axum::body::Body>`; its futures, bodies and errors are `Send`, because they may go to a stage",
    note = "what is not `Send` is served as `greenroom::OnLoops(application)`, and stays on the loops",
    note = "a make-service of your own takes `greenroom::ConnectionInfo`",
    note = "a type of your own in `ConnectInfo` implements `Connected<greenroom::IncomingStream<'_, {L}>>`, or `Connected<greenroom::IncomingConnection>` for every listener"
)]
pub trait ApplicationOn<L: Listener, Kind>: Sized + 'static {
    /// What the server's loops are given.
    type App: App;

    /// Turns this into it. Its requests are of the clients that the key says. If it is to look at
    /// each connection that is accepted, with what does so.
    fn into_app_on(self, client_key: Option<ClientKey>) -> (Self::App, Option<Introduction<L>>);
}

/// Marks an [`ApplicationOn`] any listener that is an [`Application`] of this kind.
#[derive(Debug)]
pub struct OfAnyListener<Kind>(Kind);

/// Marks an [`ApplicationOn`] one listener, whose streams it is shown.
#[derive(Debug)]
pub enum OfIncomingStreams {}

/// Marks an [`Application`] that answers requests.
#[derive(Debug)]
pub enum OfRequests {}

/// Marks an [`Application`] that makes a service for each connection.
#[derive(Debug)]
pub enum OfConnections {}

/// Marks an [`Application`] that is told who is connected, by axum's
/// `into_make_service_with_connect_info`.
#[derive(Debug)]
pub enum OfConnectInfo {}

/// Marks an [`Application`] that is an [`App`] already.
#[derive(Debug)]
pub enum OfApps {}

impl<S, B> Application<OfRequests> for S
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

impl<M, S, B> Application<OfConnections> for M
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

impl<S, B, C> Application<OfConnectInfo> for IntoMakeServiceWithConnectInfo<S, C>
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

impl<A: App> Application<OfApps> for A {
    type App = A;

    fn into_app(self, _: Option<ClientKey>) -> A {
        if !self.places_itself() {
            say_unplaced::<A>();
        }
        self
    }
}
