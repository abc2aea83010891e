use std::any::type_name;
use std::convert::Infallible;

use axum::body::Body;
use axum::extract::connect_info::{Connected, IntoMakeServiceWithConnectInfo};
use greenroom_server::{App, BoxError, ConnectionInfo};
use greenroom_stage::ClientKey;
use http::{Request, Response};
use tower_service::Service;

use super::adapted::Adapted;
use super::per_connection::Made;
use super::{
    IncomingConnection, IntoApp, OfApps, OfConnectInfo, OfConnections, OfLoops, OfRequests,
};
use crate::placing::AsItIs;

/// An application that stays on the loops, as a whole: for services and futures that are not
/// `Send`, and so cannot go to a stage, and for handlers that use `tokio::task::spawn_local`. One
/// of its handlers that computes or blocks holds up all connections of its loop; the server says so
/// when it starts.
///
/// ```no_run
/// use std::convert::Infallible;
/// use std::rc::Rc;
///
/// use greenroom::{Body, OnLoops};
/// use http::{Request, Response};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = tower::service_fn(|_: Request<Body>| async {
///     let text = Rc::new("no other thread may have this");
///     tokio::task::yield_now().await;
///     Ok::<_, Infallible>(Response::new(Body::from(*text)))
/// });
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:5000").await?;
/// greenroom::serve(listener, OnLoops(app)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct OnLoops<A>(pub A);

impl<S, B, L> IntoApp<OfLoops<OfRequests>, L> for OnLoops<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: 'static,
    B: http_body::Body<Error: Into<BoxError>> + 'static,
{
    type App = Adapted<S>;

    fn into_app(self, client_key: Option<ClientKey>) -> Adapted<S> {
        Adapted::new(self.0, client_key)
    }

    fn unplaced(&self) -> Option<&'static str> {
        Some(type_name::<S>())
    }
}

impl<M, S, B, L> IntoApp<OfLoops<OfConnections>, L> for OnLoops<M>
where
    M: Service<ConnectionInfo, Response = S, Error = Infallible> + Clone + Send + 'static,
    M::Future: 'static,
    S: Service<Request<Body>, Response = Response<B>> + Clone + 'static,
    S::Error: Into<BoxError>,
    S::Future: 'static,
    B: http_body::Body<Error: Into<BoxError>> + 'static,
{
    type App = Made<M, ConnectionInfo, AsItIs>;

    fn into_app(self, client_key: Option<ClientKey>) -> Self::App {
        Made::new(self.0, AsItIs, client_key)
    }

    fn unplaced(&self) -> Option<&'static str> {
        Some(type_name::<M>())
    }
}

impl<S, B, C, L> IntoApp<OfLoops<OfConnectInfo>, L>
    for OnLoops<IntoMakeServiceWithConnectInfo<S, C>>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: 'static,
    B: http_body::Body<Error: Into<BoxError>> + 'static,
    C: Connected<IncomingConnection>,
{
    type App = Made<IntoMakeServiceWithConnectInfo<S, C>, IncomingConnection, AsItIs>;

    fn into_app(self, client_key: Option<ClientKey>) -> Self::App {
        Made::new(self.0, AsItIs, client_key)
    }

    fn unplaced(&self) -> Option<&'static str> {
        Some(type_name::<IntoMakeServiceWithConnectInfo<S, C>>())
    }
}

impl<A: App, L> IntoApp<OfLoops<OfApps>, L> for OnLoops<A> {
    type App = A;

    fn into_app(self, _: Option<ClientKey>) -> A {
        self.0
    }

    fn unplaced(&self) -> Option<&'static str> {
        Some(type_name::<A>())
    }
}
