use std::pin::Pin;
use std::task::{Context, Poll};

use greenroom_server::ConnectionInfo;
use greenroom_stage::Client;
use pin_project_lite::pin_project;
use tower_service::Service;

/// A service that works for the client of one connection: what it submits to a stage is that
/// client's.
#[derive(Clone, Debug)]
pub struct ForClient<S> {
    service: S,
    client: Client,
}

impl<S> ForClient<S> {
    pub(super) fn new(service: S, connection: &ConnectionInfo) -> Self {
        // Who is at the other end of a Unix socket the server does not tell: mostly it is one proxy.
        let peer = connection.peer.map(|peer| Client::at(peer.ip()));
        Self {
            service,
            client: peer.unwrap_or(Client::UNKNOWN),
        }
    }
}

impl<S: Service<R>, R> Service<R> for ForClient<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = ForClientFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        let Self { service, client } = self;
        client.within(|| service.poll_ready(cx))
    }

    fn call(&mut self, request: R) -> Self::Future {
        let Self { service, client } = self;
        ForClientFuture {
            future: client.within(|| service.call(request)),
            client: *client,
        }
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
