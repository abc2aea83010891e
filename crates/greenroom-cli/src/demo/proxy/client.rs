//! The HTTP client under `/proxy`.

use std::cell::OnceCell;
use std::time::Duration;

use axum::body::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioTimer};

/// A request to the upstream has no body.
pub(super) type NoBody = Empty<Bytes>;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// The longest life of an unused connection: less than most servers', so that a request seldom
/// meets a connection that the upstream has just closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Unused connections that one thread keeps. At 5,000 requests a second against an upstream that
/// takes 170 ms, 850 are in use at once; if fewer were kept, the rest would be opened again each
/// time.
const IDLE_CONNECTIONS_MAX: usize = 2048;

/// The size of each connection's read buffer. hyper's own choice grows with the response and stays
/// grown, and a thousand pooled connections would hold that.
const READ_BUFFER_BYTES: usize = 16 * 1024;

thread_local! {
    /// The client of one thread, not of the process: a pooled connection is driven by the runtime
    /// that opened it, and every loop is a runtime of its own. A connection borrowed from another
    /// loop would cross threads at each read, and would hang when that loop computes. A stage's
    /// thread works for all loops; but this route is soon found to be short, and then runs on its
    /// loop.
    static CLIENT: OnceCell<Client<HttpConnector, NoBody>> = const { OnceCell::new() };
}

pub(super) async fn send(request: Request<NoBody>) -> Result<Response<Incoming>, Error> {
    let response = CLIENT.with(|client| client.get_or_init(build).request(request));
    response.await
}

fn build() -> Client<HttpConnector, NoBody> {
    let mut connector = HttpConnector::new();
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector.set_nodelay(true);
    Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_timer(TokioTimer::new())
        .http1_read_buf_exact_size(READ_BUFFER_BYTES)
        .build(connector)
}
