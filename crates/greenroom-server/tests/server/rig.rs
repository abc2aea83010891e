//! A server on the test's own thread, and the handlers that tests give it.

use std::convert::Infallible;
use std::future::Future;
use std::path::PathBuf;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use futures_util::stream;
use greenroom_server::{
    Address, App, BoxError, DrainReport, Error, Handle, RequestBody, Server, ServerBuilder,
    SharedService,
};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, LocalSet};
use tokio::time::{Instant, timeout};

use crate::client::Client;
use crate::over;

pub(crate) type Body = UnsyncBoxBody<Bytes, BoxError>;
pub(crate) type Reply = Result<Response<Body>, BoxError>;

/// Longer than any time-out of the server; a test that takes it hangs.
const HUNG: Duration = Duration::from_hours(24);
pub(crate) const HUNG_FOR_REAL: Duration = Duration::from_mins(1);

/// Runs a test where it can start a server on its own thread. For tests on the paused clock.
pub(crate) async fn local<F: Future>(test: F) -> F::Output {
    let local = LocalSet::new();
    let test = timeout(HUNG, local.run_until(test));
    test.await.expect("the test hangs")
}

/// The same on the real clock.
pub(crate) async fn within<F: Future>(test: F) -> F::Output {
    let local = LocalSet::new();
    let test = timeout(HUNG_FOR_REAL, local.run_until(test));
    test.await.expect("the test hangs")
}

/// A server on a Unix socket, with all loops on this thread.
pub(crate) struct Rig {
    pub(crate) handle: Handle,
    pub(crate) serving: JoinHandle<Result<DrainReport, Error>>,
    pub(crate) path: PathBuf,
    _directory: TempDir,
}

impl Rig {
    pub(crate) fn start(app: impl App) -> Self {
        Self::with(app, |builder| builder)
    }

    pub(crate) fn with(app: impl App, set: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("server.sock");
        let builder = Server::builder()
            .loops(1.try_into().unwrap())
            .listen(Address::Unix(path.clone()));
        let server = over::server(set(builder)).bind().unwrap();
        Self {
            handle: server.handle(),
            serving: tokio::task::spawn_local(server.serve_local(app)),
            path,
            _directory: directory,
        }
    }

    pub(crate) async fn connect(&self) -> Client {
        Client::unix(&self.path).await
    }

    /// The result of the server.
    pub(crate) async fn ended(self) -> DrainReport {
        self.serving.await.unwrap().unwrap()
    }
}

/// An application of one function. Its type does not tell which: the server is compiled once for
/// all tests.
pub(crate) fn app<F, Ready>(handler: F) -> SharedService<Boxed>
where
    F: Fn(Request<RequestBody>) -> Ready + Clone + Send + 'static,
    Ready: Future<Output = Reply> + 'static,
{
    SharedService(Boxed(Box::new(handler)))
}

/// A service of one function.
pub(crate) struct Boxed(Box<dyn Handler>);

trait Handler: Send {
    fn call(&self, request: Request<RequestBody>) -> LocalBoxFuture<'static, Reply>;

    fn copy(&self) -> Box<dyn Handler>;
}

impl<F, Ready> Handler for F
where
    F: Fn(Request<RequestBody>) -> Ready + Clone + Send + 'static,
    Ready: Future<Output = Reply> + 'static,
{
    fn call(&self, request: Request<RequestBody>) -> LocalBoxFuture<'static, Reply> {
        Box::pin(self(request))
    }

    fn copy(&self) -> Box<dyn Handler> {
        Box::new(self.clone())
    }
}

impl Clone for Boxed {
    fn clone(&self) -> Self {
        Self(self.0.copy())
    }
}

impl tower::Service<Request<RequestBody>> for Boxed {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = LocalBoxFuture<'static, Reply>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        self.0.call(request)
    }
}

/// A response of this text.
pub(crate) fn text(text: impl Into<Bytes>) -> Response<Body> {
    let body = Full::new(text.into()).map_err(|never: Infallible| match never {});
    Response::new(body.boxed_unsync())
}

/// A response whose body is this stream of parts.
pub(crate) fn streamed<S>(parts: S) -> Response<Body>
where
    S: futures_util::Stream<Item = Result<http_body::Frame<Bytes>, BoxError>> + Send + 'static,
{
    Response::new(StreamBody::new(parts).boxed_unsync())
}

/// Reads a request's body to its end and responds with its length.
pub(crate) async fn measure(request: Request<RequestBody>) -> Reply {
    let body = request.into_body().collect().await?;
    Ok(text(body.to_bytes().len().to_string()))
}

/// Told when it is dropped, and when.
pub(crate) struct Dropped(pub(crate) mpsc::UnboundedSender<Instant>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _told = self.0.send(Instant::now());
    }
}

/// Lets every task run that can.
pub(crate) async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

/// Asserts that `since` is so long ago, and at most two ticks of the server's clock longer.
#[track_caller]
pub(crate) fn assert_elapsed(since: Instant, expected: Duration) {
    let elapsed = since.elapsed();
    let tolerated = Duration::from_millis(500);
    assert!(
        elapsed >= expected && elapsed <= expected + tolerated,
        "{elapsed:?} instead of {expected:?}"
    );
}

/// A body without end, which tells when it is dropped.
pub(crate) fn endless(
    kept: Dropped,
) -> impl futures_util::Stream<Item = Result<Frame<Bytes>, greenroom_server::BoxError>> {
    let part = Bytes::from(vec![b'e'; 60_000]);
    stream::unfold(kept, move |kept| {
        let part = part.clone();
        async { Some((Ok(Frame::data(part)), kept)) }
    })
}
