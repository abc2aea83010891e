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

/// How long an unused connection is kept: less than most servers keep theirs, so that a request
/// seldom meets a connection that the upstream has just closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Unused connections that one thread keeps. At 5,000 requests a second against an upstream that
/// takes 170 ms, 850 are busy at once; if fewer were kept, the rest would be opened anew each time.
const IDLE_CONNECTIONS_MAX: usize = 2048;

/// Each connection reads into a buffer of this size, always. hyper's own choice grows with the
/// answer and stays grown, which is what a thousand pooled connections would then hold.
const READ_BUFFER_BYTES: usize = 16 * 1024;

thread_local! {
    /// One client a thread, not one for the process: a pooled connection is driven by the runtime
    /// that opened it, and every loop is a runtime of its own. A connection borrowed from another
    /// loop would cross threads at each read, and would hang when that loop computes. A stage's thread
    /// works for all loops; but this route is soon found to be short, and then runs on its loop.
    static CLIENT: OnceCell<Client<HttpConnector, NoBody>> = const { OnceCell::new() };
}

pub(super) async fn send(request: Request<NoBody>) -> Result<Response<Incoming>, Error> {
    let answer = CLIENT.with(|client| client.get_or_init(build).request(request));
    answer.await
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
