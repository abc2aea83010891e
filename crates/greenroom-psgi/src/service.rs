//! The gateway as a tower service, for a route of a router.
//!
//! A router's handlers may run on any thread, and their futures move between threads. What is
//! between a request and its worker does neither, so the service has a thread of its own for it.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::{ConnectInfo, OriginalUri};
use greenroom_server::{ForwardedFor, RequestHandle};
use greenroom_stage::Client;
use http::{Extensions, Request, Response, StatusCode};
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_local;
use tower_service::Service;

use crate::body::ResponseBody;
use crate::environment::{ConnectionEnvironment, is_below};
use crate::exchange::{self, Exchange};
use crate::gateway::Gateway;
use crate::pump;

impl Gateway {
    /// Returns a service for a route of an axum `Router`, or for whatever else serves requests with
    /// axum's bodies. It is cloned for each request at the cost of two reference counts, so call
    /// this once for each router: each call starts a thread, which ends with the last clone.
    ///
    /// ```no_run
    /// use axum::{Router, routing::get};
    /// use greenroom_psgi::Gateway;
    ///
    /// # async fn routed() -> Result<Router, Box<dyn std::error::Error>> {
    /// let perl = Gateway::builder("app.psgi").workers(4).start().await?;
    /// let router = Router::new()
    ///     .route("/rust", get(|| async { "Hello from Rust\n" }))
    ///     .nest_service("/perl", perl.service()?);
    /// # Ok(router)
    /// # }
    /// ```
    ///
    /// The application sees what it would see behind the gateway alone, except for this:
    /// - `SCRIPT_NAME` is the part of the path that the routers have taken, with the
    ///   [mount](crate::Builder::mount) behind it: leave that empty in a router that nests the
    ///   service, or a request has to name both.
    /// - `SERVER_NAME` and `SERVER_PORT` are of the `Host` that the client asked for.
    /// - `REMOTE_ADDR` is known if the server is Greenroom, or if the router is served
    ///   `into_make_service_with_connect_info::<SocketAddr>()`. Else, and on a Unix socket without
    ///   a trusted proxy, it is left out, and all such clients share what the queue gives to one.
    /// - `greenroom.proxy_addr` is there in the second case only.
    ///
    /// Up to [`queue_max`](crate::Builder::queue_max) requests may be on their way to the thread,
    /// which puts them into the queue before the workers; further ones wait before it.
    ///
    /// # Errors
    ///
    /// The system's error if it has no thread or no descriptor to give.
    pub fn service(&self) -> io::Result<GatewayService> {
        let (jobs, queue) = mpsc::channel(self.settings().limits.queue_max);
        let (tell, told) = std::sync::mpsc::channel();
        let thread = move || match runtime() {
            Ok(runtime) => {
                tell.send(Ok(())).ok();
                runtime.block_on(run(queue));
            }
            Err(error) => {
                tell.send(Err(error)).ok();
            }
        };
        std::thread::Builder::new()
            .name("psgi-service".to_owned())
            .spawn(thread)?;
        // It comes at once, also if the thread panics.
        told.recv()
            .unwrap_or_else(|gone| Err(io::Error::other(gone)))?;
        let gateway = self.clone();
        Ok(GatewayService { gateway, jobs })
    }
}

/// A gateway behind a router; made by [`Gateway::service`]. Clones share the thread.
#[derive(Clone, Debug)]
pub struct GatewayService {
    gateway: Gateway,
    jobs: mpsc::Sender<Job>,
}

/// A request on its way to the service's thread.
struct Job {
    request: Request<Body>,
    connection: ConnectionEnvironment,
    /// Keeps the thread, until the response is sent.
    service: GatewayService,
    response: oneshot::Sender<Response<Body>>,
}

impl Service<Request<Body>> for GatewayService {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (mut parts, body) = request.into_parts();
        // Both are known only on this thread, during this call.
        let (handle, client) = (RequestHandle::of(&parts.extensions), Client::current());
        let peer = peer(&parts.extensions, client);
        let connection = ConnectionEnvironment::of_request(&parts, peer, client);
        if let Some(handle) = handle {
            parts.extensions.insert(handle);
        }
        let (response, responded) = oneshot::channel();
        let job = Job {
            request: Request::from_parts(parts, body),
            connection,
            service: self.clone(),
            response,
        };
        let jobs = self.jobs.clone();
        Box::pin(async move {
            // If it cannot be sent, no response comes either.
            jobs.send(job).await.ok();
            Ok(responded.await.unwrap_or_else(|_| failed()))
        })
    }
}

/// Returns the address that is connected, if it is known: that of a proxy has no name but axum's.
fn peer(extensions: &Extensions, client: Client) -> Option<SocketAddr> {
    let connected = extensions.get::<ConnectInfo<SocketAddr>>();
    let connected = connected.map(|ConnectInfo(peer)| *peer);
    // Of a client on a Unix socket axum says `0.0.0.0:0`.
    let connected = connected.filter(|peer| !peer.ip().is_unspecified());
    let is_forwarded = extensions.get::<ForwardedFor>().is_some();
    connected.or_else(|| client.sender().filter(|_| !is_forwarded))
}

fn runtime() -> io::Result<LocalRuntime> {
    Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
}

/// Runs on the service's thread, until the last clone of the service is dropped.
async fn run(mut queue: mpsc::Receiver<Job>) {
    while let Some(job) = queue.recv().await {
        spawn_local(job.run());
    }
}

impl Job {
    async fn run(self) {
        let Self {
            request,
            connection,
            service,
            mut response,
        } = self;
        let exchanged = tokio::select! {
            biased;
            exchanged = exchange(&service.gateway, request, connection) => exchanged,
            // The client has left: as the exchange is dropped, its worker learns it.
            () = response.closed() => return,
        };
        let (head, body) = exchanged.into_parts();
        let (body, pumping) = pump::sendable(body);
        response.send(Response::from_parts(head, body)).ok();
        if let Some(pumping) = pumping {
            pumping.await;
        }
    }
}

async fn exchange(
    gateway: &Gateway,
    mut request: Request<Body>,
    connection: ConnectionEnvironment,
) -> Response<ResponseBody> {
    let script_bytes = restore_path(&mut request);
    let mount = gateway.mount();
    if !is_below(mount, &request.uri().path()[script_bytes..]) {
        return exchange::not_found();
    }
    let script_bytes = script_bytes + mount.len();
    let exchange = Exchange::new(gateway.clone(), Rc::new(connection), script_bytes);
    exchange.run(request).await
}

/// Puts back what the routers have taken off the path, and returns its length in bytes.
fn restore_path(request: &mut Request<Body>) -> usize {
    let Some(OriginalUri(original)) = request.extensions_mut().remove() else {
        return 0;
    };
    let Some(taken) = taken(original.path(), request.uri().path()) else {
        return 0;
    };
    *request.uri_mut() = original;
    taken
}

/// Returns the bytes that are missing at the front of `left`; `None` if it has been rewritten.
fn taken(original: &str, left: &str) -> Option<usize> {
    match original.strip_suffix(left) {
        Some(taken) => Some(taken.len()),
        // Where nothing is left axum puts a slash, which the client has not sent.
        None => (left == "/").then_some(original.len()),
    }
}

fn failed() -> Response<Body> {
    let mut response = Response::new(Body::from("the application failed\n"));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_routers_have_taken_is_in_front_of_what_they_left() {
        for (original, left, expected) in [
            ("/perl/a%20b", "/a%20b", Some(5)),
            ("/perl/", "/", Some(5)),
            ("/perl", "/", Some(5)),
            ("/", "/", Some(0)),
            ("/perl/a", "/perl/a", Some(0)),
            ("*", "*", Some(0)),
            ("/a", "/other", None),
        ] {
            assert_eq!(taken(original, left), expected, "{original} {left}");
        }
    }
}
