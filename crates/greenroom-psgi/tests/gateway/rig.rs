//! A gateway with real workers behind a real server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use greenroom_psgi::{Builder, Gateway, GatewayService, WorkerState, WorkerStatus};
use greenroom_server::{Address, App, DrainReport, Error, Handle, RequestBody};
use greenroom_server::{Server, ServerBuilder, SharedService};
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tower::ServiceExt;

/// Fails a test that hangs.
pub(crate) async fn within<F: Future>(test: F) -> F::Output {
    timeout(Duration::from_mins(1), test)
        .await
        .expect("the test hangs")
}

/// An application's file in a directory of its own.
pub(crate) struct Source {
    directory: TempDir,
}

impl Source {
    pub(crate) fn new(text: &str) -> Self {
        let directory = TempDir::new().expect("a directory can be made");
        let source = Self { directory };
        source.write("app.psgi", text);
        source
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.file(name), text).expect("the file can be written");
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn app(&self) -> PathBuf {
        self.file("app.psgi")
    }
}

/// A server of two loops on a free port.
pub(crate) struct Rig {
    pub(crate) address: SocketAddr,
    pub(crate) gateway: Gateway,
    pub(crate) source: Source,
    handle: Handle,
    serving: JoinHandle<Result<DrainReport, Error>>,
}

impl Rig {
    /// Serves an application by one worker.
    pub(crate) async fn serve(text: &str) -> Self {
        Self::with(text, |builder| builder).await
    }

    /// Serves an application with these settings; by default with one worker.
    pub(crate) async fn with(text: &str, settings: impl FnOnce(Builder) -> Builder) -> Self {
        Self::behind(Server::builder(), text, settings).await
    }

    pub(crate) async fn behind(
        server: ServerBuilder,
        text: &str,
        settings: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        Self::serving(server, text, settings, Gateway::clone).await
    }

    /// Serves the router that `route` makes with an application's service.
    pub(crate) async fn routed(
        text: &str,
        settings: impl FnOnce(Builder) -> Builder,
        route: impl FnOnce(GatewayService) -> Router,
    ) -> Self {
        Self::serving(Server::builder(), text, settings, |gateway| {
            let router = route(gateway.service().expect("there is a thread"));
            let adapted = |request: Request<RequestBody>| request.map(Body::new);
            SharedService(router.map_request(adapted))
        })
        .await
    }

    async fn serving<A: App>(
        server: ServerBuilder,
        text: &str,
        settings: impl FnOnce(Builder) -> Builder,
        app: impl FnOnce(&Gateway) -> A,
    ) -> Self {
        let source = Source::new(text);
        let builder = settings(Gateway::builder(source.app()).workers(1));
        let gateway = builder.start().await.expect("the application starts");
        await_workers(&gateway).await;
        let loops = 2.try_into().expect("two is not zero");
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = server.loops(loops).listen(any_port).bind();
        let server = server.expect("there is a free port");
        let Address::Tcp(address) = server.local_addresses()[0] else {
            panic!("a TCP address was named")
        };
        Self {
            address,
            source,
            handle: server.handle(),
            serving: tokio::spawn(server.serve(app(&gateway))),
            gateway,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        let request = Request::get(self.url(path)).body(Full::default());
        ask(request.expect("the request is valid")).await
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Bytes>) -> Response {
        let request = Request::post(self.url(path)).body(Full::new(body.into()));
        ask(request.expect("the request is valid")).await
    }

    /// Sends these bytes and reads up to the end of the connection.
    pub(crate) async fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes).await.expect("the server takes it");
        let mut response = Vec::new();
        let read = stream.read_to_end(&mut response).await;
        read.expect("the server ends the connection in order");
        String::from_utf8_lossy(&response).into_owned()
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        let connected = TcpStream::connect(self.address).await;
        connected.expect("the server accepts")
    }

    /// Drains the server, and ends the workers.
    pub(crate) async fn end(self) -> DrainReport {
        self.handle.drain();
        let report = self.serving.await.expect("serving does not panic");
        self.gateway.shutdown().await;
        report.expect("serving ends in order")
    }
}

/// Waits until all workers are ready: the gateway serves with the first.
async fn await_workers(gateway: &Gateway) {
    let is_ready = |worker: &WorkerStatus| worker.state == WorkerState::Ready;
    let all_are_ready = || {
        let status = gateway.status();
        let ready = status.workers.iter().filter(|worker| is_ready(worker));
        ready.count() == status.workers_wanted
    };
    while !all_are_ready() {
        sleep(Duration::from_millis(5)).await;
    }
}

/// A response with its whole body.
pub(crate) type Response = http::Response<Bytes>;

pub(crate) fn text(response: &Response) -> String {
    String::from_utf8_lossy(response.body()).into_owned()
}

pub(crate) async fn ask(request: Request<Full<Bytes>>) -> Response {
    let client: Client<HttpConnector, Full<Bytes>> =
        Client::builder(TokioExecutor::new()).build_http();
    let (head, body) = client
        .request(request)
        .await
        .expect("there is a response")
        .into_parts();
    let body = body
        .collect()
        .await
        .expect("the response is whole")
        .to_bytes();
    Response::from_parts(head, body)
}
