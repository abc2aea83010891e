use std::cell::OnceCell;
use std::convert::Infallible;
use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use greenroom_server::{App, BoxError, ConnectionInfo, LoopWatch, Pressure};
use greenroom_stage::ClientKey;
use http::{Request, Response};
use tower_service::Service;

use super::adapted::shed_under;
use super::for_client::ForClient;
use crate::loop_watch;
use crate::placing::Placed;

/// An [`App`] that makes a service for each connection, from a `T` that describes it, and places it
/// as `P` does.
#[derive(Clone, Debug)]
pub struct Made<M, T, P> {
    make: M,
    placed: P,
    client_key: Option<ClientKey>,
    target: PhantomData<fn(T)>,
}

impl<M, T, P> Made<M, T, P> {
    pub(super) fn new(make: M, placed: P, client_key: Option<ClientKey>) -> Self {
        Self {
            make,
            placed,
            client_key,
            target: PhantomData,
        }
    }
}

impl<M, T, P, B> App for Made<M, T, P>
where
    M: Service<T, Error = Infallible> + Clone + Send + 'static,
    M::Future: 'static,
    T: From<ConnectionInfo> + Clone + 'static,
    P: Placed<M::Response> + Clone + Send + 'static,
    P::Service: Service<Request<Body>, Response = Response<B>> + Clone + 'static,
    <P::Service as Service<Request<Body>>>::Error: Into<BoxError>,
    <P::Service as Service<Request<Body>>>::Future: 'static,
    B: http_body::Body<Error: Into<BoxError>> + 'static,
{
    type Body = B;
    type Service = ForClient<PerConnection<M, T, P, P::Service>>;

    fn connect(&self, info: &ConnectionInfo) -> Self::Service {
        let service = PerConnection {
            make: self.make.clone(),
            placed: self.placed.clone(),
            connection: info.clone().into(),
            made: Rc::default(),
            making: None,
            service: None,
        };
        ForClient::new(service, info, self.client_key.clone())
    }

    fn pressure(&self, pressure: Pressure) {
        shed_under(pressure);
    }

    fn watch_loop(&self, name: &str) -> Option<Arc<dyn LoopWatch>> {
        Some(loop_watch::watch(name))
    }
}

/// The service of one connection, made when its first request comes. Clones of it, one for each
/// request of an HTTP/2 connection, share the service.
#[derive(Debug)]
pub struct PerConnection<M: Service<T>, T, P, S> {
    make: M,
    placed: P,
    connection: T,
    made: Rc<OnceCell<S>>,
    making: Option<Pin<Box<M::Future>>>,
    service: Option<S>,
}

impl<M, T, P, S> Clone for PerConnection<M, T, P, S>
where
    M: Service<T> + Clone,
    T: Clone,
    P: Clone,
    S: Clone,
{
    fn clone(&self) -> Self {
        Self {
            make: self.make.clone(),
            placed: self.placed.clone(),
            connection: self.connection.clone(),
            made: Rc::clone(&self.made),
            making: None,
            service: self.service.clone(),
        }
    }
}

impl<M, T, P> PerConnection<M, T, P, P::Service>
where
    M: Service<T, Error = Infallible>,
    T: Clone,
    P: Placed<M::Response>,
    P::Service: Clone,
{
    fn poll_made(&mut self, cx: &mut Context<'_>) -> Poll<P::Service> {
        loop {
            if let Some(made) = self.made.get() {
                return Poll::Ready(made.clone());
            }
            if let Some(making) = &mut self.making {
                let Ok(service) = ready!(making.as_mut().poll(cx));
                let placed = &self.placed;
                // Two requests of one connection may each make one: the first stays.
                let made = self.made.get_or_init(|| placed.place(service));
                return Poll::Ready(made.clone());
            }
            let Ok(()) = ready!(self.make.poll_ready(cx));
            self.making = Some(Box::pin(self.make.call(self.connection.clone())));
        }
    }
}

impl<M, T, P> Service<Request<Body>> for PerConnection<M, T, P, P::Service>
where
    M: Service<T, Error = Infallible> + Clone,
    T: Clone,
    P: Placed<M::Response> + Clone,
    P::Service: Service<Request<Body>> + Clone,
{
    type Response = <P::Service as Service<Request<Body>>>::Response;
    type Error = <P::Service as Service<Request<Body>>>::Error;
    type Future = <P::Service as Service<Request<Body>>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        if self.service.is_none() {
            self.service = Some(ready!(self.poll_made(cx)));
        }
        let service = self.service.as_mut().expect("it was just made");
        service.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let service = self.service.as_mut().expect("called when it was ready");
        service.call(request)
    }
}
