use std::convert::Infallible;

use axum::body::Body;
use axum::extract::connect_info::{Connected, IntoMakeServiceWithConnectInfo};
use greenroom_server::{App, BoxError, ConnectionInfo};
use greenroom_stage::ClientKey;
use http::{Request, Response};
use tower_service::Service;

use super::adapted::Adapted;
use super::per_connection::Made;
use super::{IncomingConnection, OfApps, OfConnectInfo, OfConnections, OfRequests};
use crate::placing::AsItIs;

/// What a server can serve and leave on its loops: what an [`Application`](super::Application) is,
/// but futures, bodies and errors need not be `Send`. For [`Server::serve_local`](crate::Server::serve_local)
/// and [`OnLoops`](super::OnLoops).
///
/// The type parameter only tells the kinds apart; the compiler finds it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be served on the loops",
    label = "no router, service or make-service that a server takes",
    note = "a handler is served as `handler.into_make_service()`, with `use axum::handler::HandlerWithoutStateExt`, or as a route: `Router::new().route(\"/\", get(handler))`",
    note = "a `Router<S>` lacks its state: give it by `.with_state(state)`",
    note = "a service is `Clone + Send + 'static` and takes `http::Request<axum::body::Body>`; its futures and bodies are `'static`",
    note = "a type of your own in `ConnectInfo` implements `Connected<greenroom::IncomingConnection>`"
)]
pub trait LocalApplication<Kind>: Sized + 'static {
    /// What the server's loops are given.
    type App: App;

    /// Turns this into it. Its requests are of the clients that the key says.
    fn into_local_app(self, client_key: Option<ClientKey>) -> Self::App;
}

impl<S, B> LocalApplication<OfRequests> for S
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: 'static,
    B: http_body::Body<Error: Into<BoxError>> + 'static,
{
    type App = Adapted<S>;

    fn into_local_app(self, client_key: Option<ClientKey>) -> Adapted<S> {
        Adapted::new(self, client_key)
    }
}

impl<M, S, B> LocalApplication<OfConnections> for M
where
    M: Service<ConnectionInfo, Response = S, Error = Infallible> + Clone + Send + 'static,
    M::Future: 'static,
    S: Service<Request<Body>, Response = Response<B>> + Clone + 'static,
    S::Error: Into<BoxError>,
    S::Future: 'static,
    B: http_body::Body<Error: Into<BoxError>> + 'static,
{
    type App = Made<M, ConnectionInfo, AsItIs>;

    fn into_local_app(self, client_key: Option<ClientKey>) -> Self::App {
        Made::new(self, AsItIs, client_key)
    }
}

impl<S, B, C> LocalApplication<OfConnectInfo> for IntoMakeServiceWithConnectInfo<S, C>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: 'static,
    B: http_body::Body<Error: Into<BoxError>> + 'static,
    C: Connected<IncomingConnection>,
{
    type App = Made<Self, IncomingConnection, AsItIs>;

    fn into_local_app(self, client_key: Option<ClientKey>) -> Self::App {
        Made::new(self, AsItIs, client_key)
    }
}

impl<A: App> LocalApplication<OfApps> for A {
    type App = A;

    fn into_local_app(self, _: Option<ClientKey>) -> A {
        self
    }
}
