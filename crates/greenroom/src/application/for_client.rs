use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use greenroom_server::{BodyError, BoxError, ConnectionInfo, ForwardedFor, RequestBody};
use greenroom_stage::{Client, ClientKey};
use http::Request;
use http_body_util::BodyExt;
use pin_project_lite::pin_project;
use tower_service::Service;

use super::length_limit::length_limit_error;

/// A service of axum's bodies, called with the server's by one connection. It works for the client
/// of each request: work that it submits to a stage is that client's.
#[derive(Clone, Debug)]
pub struct ForClient<S> {
    service: S,
    connected: Client,
    client_key: Option<ClientKey>,
    #[cfg(any(feature = "tls", feature = "tls-ring"))]
    tls: Option<std::sync::Arc<greenroom_server::TlsInfo>>,
}

impl<S> ForClient<S> {
    pub(super) fn new(
        service: S,
        connection: &ConnectionInfo,
        client_key: Option<ClientKey>,
    ) -> Self {
        // The system knows the peer of a Unix socket, but mostly that is one proxy for many
        // clients.
        let peer = connection.peer.map(Client::from);
        Self {
            service,
            connected: peer.unwrap_or(Client::UNKNOWN),
            client_key,
            #[cfg(any(feature = "tls", feature = "tls-ring"))]
            tls: connection.tls.clone(),
        }
    }

    #[cfg(any(feature = "tls", feature = "tls-ring"))]
    fn tell_tls(&self, request: &mut Request<Body>) {
        if let Some(tls) = &self.tls {
            let extensions = request.extensions_mut();
            extensions.insert(std::sync::Arc::clone(tls));
            // What a reverse proxy tells its upstream.
            extensions.insert(http::uri::Scheme::HTTPS);
        }
    }

    /// Returns the client of a request, which stays where it is: it is long to move.
    fn client_of(&self, request: &mut Request<Body>) -> Client {
        // A trusted proxy's connection is that of many clients.
        let forwarded = request.extensions().get::<ForwardedFor>();
        let sender = forwarded.map_or(self.connected, |forwarded| Client::at(forwarded.ip));
        let Some(client_key) = &self.client_key else {
            return sender;
        };
        let (parts, body) = mem::take(request).into_parts();
        let client = sender.within(|| client_key.client(&parts));
        *request = Request::from_parts(parts, body);
        client.map_or(sender, |client| client.sent_as_by(sender))
    }
}

impl<S: Service<Request<Body>>> Service<Request<RequestBody>> for ForClient<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = ForClientFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        let service = &mut self.service;
        self.connected.within(|| service.poll_ready(cx))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let mut request = request.map(adapt_body);
        let client = self.client_of(&mut request);
        #[cfg(any(feature = "tls", feature = "tls-ring"))]
        self.tell_tls(&mut request);
        // Not within a closure, into which the request would be moved: it is long.
        let _working = client.enter();
        ForClientFuture {
            future: self.service.call(request),
            client,
        }
    }
}

/// Converts a body. One that is in memory already needs no allocation of its own.
fn adapt_body(body: RequestBody) -> Body {
    match body.try_into_bytes() {
        Ok(bytes) if bytes.is_empty() => Body::empty(),
        Ok(bytes) => Body::from(bytes),
        Err(body) => Body::new(body.map_err(adapt_error)),
    }
}

/// Converts an error; the limit's becomes the one that axum's extractors respond to with 413.
fn adapt_error(error: BodyError) -> BoxError {
    match error {
        BodyError::TooLarge => length_limit_error(),
        other => other.into(),
    }
}

pin_project! {
    /// The response of a service that works for a client.
    #[derive(Debug)]
    pub struct ForClientFuture<F> {
        #[pin]
        future: F,
        client: Client,
    }
}

impl<F: Future> Future for ForClientFuture<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        this.client.within(|| this.future.poll(cx))
    }
}
