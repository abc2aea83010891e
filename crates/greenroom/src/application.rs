//! What can be served, and how it is called.

use std::cell::OnceCell;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::extract::connect_info::Connected;
use greenroom_server::{Address, App, BoxError, ConnectionInfo, LoopWatch, Pressure, RequestBody};
use greenroom_stage::{Importance, shed_on_this_loop};
use http::{Request, Response};
use tower_service::Service;

use crate::loop_watch;

/// What a server can serve. Implemented for cloneable tower services of `Request<Body>`, axum's
/// `Router` among them ([`OfRequests`]), for make-services, which give each connection a service of
/// its own ([`OfConnections`]), and for every [`App`] ([`OfApps`]), which is served as it is.
///
/// The type parameter only tells them apart; the compiler finds it.
pub trait Application<Kind>: Sized + 'static {
    /// What the server's loops are given.
    type App: App;

    /// Turns this into it.
    fn into_app(self) -> Self::App;
}

/// Marks an [`Application`] that answers requests.
#[derive(Debug)]
pub enum OfRequests {}

/// Marks an [`Application`] that makes a service for each connection.
#[derive(Debug)]
pub enum OfConnections {}

/// Marks an [`Application`] that is an [`App`] already.
#[derive(Debug)]
pub enum OfApps {}

impl<S, B> Application<OfRequests> for S
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: 'static,
    B: http_body::Body<Error: Into<BoxError>> + 'static,
{
    type App = Adapted<S>;

    fn into_app(self) -> Adapted<S> {
        Adapted(self)
    }
}

impl<M, S, B> Application<OfConnections> for M
where
    M: Service<IncomingConnection, Response = S, Error = Infallible> + Clone + Send + 'static,
    M::Future: 'static,
    S: Service<Request<Body>, Response = Response<B>> + Clone + 'static,
    S::Error: Into<BoxError>,
    S::Future: 'static,
    B: http_body::Body<Error: Into<BoxError>> + 'static,
{
    type App = Made<M>;

    fn into_app(self) -> Made<M> {
        Made(self)
    }
}

impl<A: App> Application<OfApps> for A {
    type App = A;

    fn into_app(self) -> A {
        self
    }
}

/// A connection that was accepted, as a make-service sees it.
///
/// `into_make_service_with_connect_info::<SocketAddr>()` works as it does with axum; types of
/// your own implement axum's `Connected<IncomingConnection>`.
#[derive(Clone, Debug)]
pub struct IncomingConnection(ConnectionInfo);

impl IncomingConnection {
    /// The client's address; `None` on a Unix socket.
    #[must_use]
    pub fn peer(&self) -> Option<SocketAddr> {
        self.0.peer
    }

    /// The address that the client connected to, as the server listens on it.
    #[must_use]
    pub fn local(&self) -> &Address {
        &self.0.local
    }
}

impl Connected<IncomingConnection> for SocketAddr {
    /// The client's address; that of a client on a Unix socket is `0.0.0.0:0`.
    fn connect_info(connection: IncomingConnection) -> Self {
        let none = SocketAddr::from(([0, 0, 0, 0], 0));
        connection.peer().unwrap_or(none)
    }
}

/// A service of axum's bodies, called with ours.
#[derive(Clone, Debug)]
pub struct Adapted<S>(S);

impl<S, B> App for Adapted<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: 'static,
    B: http_body::Body<Error: Into<BoxError>> + 'static,
{
    type Body = B;
    type Service = Self;

    fn connect(&self, _info: &ConnectionInfo) -> Self {
        self.clone()
    }

    fn pressure(&self, pressure: Pressure) {
        shed_under(pressure);
    }

    fn watch_loop(&self, name: &str) -> Option<Arc<dyn LoopWatch>> {
        Some(loop_watch::watch(name))
    }
}

/// Has the placements on this loop refuse what it can do without.
fn shed_under(pressure: Pressure) {
    shed_on_this_loop(match pressure {
        Pressure::None => None,
        Pressure::Raised => Some(Importance::Bulk),
        Pressure::Over => Some(Importance::Normal),
    });
}

impl<S: Service<Request<Body>>> Service<Request<RequestBody>> for Adapted<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<RequestBody>) -> S::Future {
        self.0.call(request.map(adapt_body))
    }
}

/// A body that is there already needs no allocation of its own.
fn adapt_body(body: RequestBody) -> Body {
    match body.try_into_bytes() {
        Ok(bytes) if bytes.is_empty() => Body::empty(),
        Ok(bytes) => Body::from(bytes),
        Err(body) => Body::new(body),
    }
}

/// An [`App`] that makes a service for each connection.
#[derive(Clone, Debug)]
pub struct Made<M>(M);

impl<M, S, B> App for Made<M>
where
    M: Service<IncomingConnection, Response = S, Error = Infallible> + Clone + Send + 'static,
    M::Future: 'static,
    S: Service<Request<Body>, Response = Response<B>> + Clone + 'static,
    S::Error: Into<BoxError>,
    S::Future: 'static,
    B: http_body::Body<Error: Into<BoxError>> + 'static,
{
    type Body = B;
    type Service = PerConnection<M, S>;

    fn connect(&self, info: &ConnectionInfo) -> PerConnection<M, S> {
        PerConnection {
            make: self.0.clone(),
            connection: IncomingConnection(info.clone()),
            made: Rc::default(),
            making: None,
            service: None,
        }
    }

    fn pressure(&self, pressure: Pressure) {
        shed_under(pressure);
    }

    fn watch_loop(&self, name: &str) -> Option<Arc<dyn LoopWatch>> {
        Some(loop_watch::watch(name))
    }
}

/// The service of one connection, made when its first request comes. Clones of it, one for each
/// request of an HTTP/2 connection, share what was made.
#[derive(Debug)]
pub struct PerConnection<M: Service<IncomingConnection>, S> {
    make: M,
    connection: IncomingConnection,
    made: Rc<OnceCell<S>>,
    making: Option<Pin<Box<M::Future>>>,
    service: Option<S>,
}

impl<M: Service<IncomingConnection> + Clone, S: Clone> Clone for PerConnection<M, S> {
    fn clone(&self) -> Self {
        Self {
            make: self.make.clone(),
            connection: self.connection.clone(),
            made: Rc::clone(&self.made),
            making: None,
            service: self.service.clone(),
        }
    }
}

impl<M, S> PerConnection<M, S>
where
    M: Service<IncomingConnection, Response = S, Error = Infallible>,
    S: Clone,
{
    fn poll_made(&mut self, cx: &mut Context<'_>) -> Poll<S> {
        loop {
            if let Some(made) = self.made.get() {
                return Poll::Ready(made.clone());
            }
            if let Some(making) = &mut self.making {
                let Ok(service) = ready!(making.as_mut().poll(cx));
                return Poll::Ready(self.made.get_or_init(|| service).clone());
            }
            let Ok(()) = ready!(self.make.poll_ready(cx));
            self.making = Some(Box::pin(self.make.call(self.connection.clone())));
        }
    }
}

impl<M, S> Service<Request<RequestBody>> for PerConnection<M, S>
where
    M: Service<IncomingConnection, Response = S, Error = Infallible> + Clone,
    S: Service<Request<Body>> + Clone,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        if self.service.is_none() {
            self.service = Some(ready!(self.poll_made(cx)));
        }
        let service = self.service.as_mut().expect("it was just made");
        service.poll_ready(cx)
    }

    fn call(&mut self, request: Request<RequestBody>) -> S::Future {
        let service = self.service.as_mut().expect("called when it was ready");
        service.call(request.map(adapt_body))
    }
}
