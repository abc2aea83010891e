use std::net::SocketAddr;
use std::time::Duration;

use greenroom::{Address, DrainReport, Error, Handle, IntoApp, Server, ServerBuilder};
use http::StatusCode;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Fails a test that hangs.
pub(crate) async fn within<F: Future>(test: F) -> F::Output {
    timeout(Duration::from_mins(1), test)
        .await
        .expect("the test hangs")
}

pub(crate) fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// A server of two loops on a free port.
pub(crate) struct Rig {
    pub(crate) address: SocketAddr,
    pub(crate) handle: Handle,
    serving: JoinHandle<Result<DrainReport, Error>>,
}

impl Rig {
    pub(crate) fn start<A, Kind>(app: A) -> Self
    where
        A: IntoApp<Kind> + Send + 'static,
        Kind: 'static,
    {
        Self::with(Server::builder(), app)
    }

    pub(crate) fn with<A, Kind>(builder: ServerBuilder, app: A) -> Self
    where
        A: IntoApp<Kind> + Send + 'static,
        Kind: 'static,
    {
        Self::with_loops(2, builder, app)
    }

    pub(crate) fn with_loops<A, Kind>(loops: usize, builder: ServerBuilder, app: A) -> Self
    where
        A: IntoApp<Kind> + Send + 'static,
        Kind: 'static,
    {
        let builder = builder.loops(loops.try_into().unwrap());
        let server = builder.listen(any_port()).bind().unwrap();
        let Address::Tcp(address) = server.local_addresses()[0] else {
            panic!("a TCP address was named")
        };
        Self {
            address,
            handle: server.handle(),
            serving: tokio::spawn(server.serve(app)),
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Awaits that all loops run: until it has begun, a loop is not in the status.
    pub(crate) async fn has_loops(&self, loops: usize) {
        while self.handle.status().loops.len() < loops {
            tokio::task::yield_now().await;
        }
    }

    /// Drains the server and awaits its end.
    pub(crate) async fn end(self) -> DrainReport {
        self.handle.drain();
        self.serving.await.unwrap().unwrap()
    }
}

pub(crate) fn http1<B>() -> Client<HttpConnector, B>
where
    B: Body<Data: Send> + Send + Unpin + 'static,
{
    Client::builder(TokioExecutor::new()).build_http()
}

pub(crate) fn http2<B>() -> Client<HttpConnector, B>
where
    B: Body<Data: Send> + Send + Unpin + 'static,
{
    Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build_http()
}

/// Sends a request and gathers the response's status and text.
pub(crate) async fn ask<B>(
    client: &Client<HttpConnector, B>,
    request: http::Request<B>,
) -> (StatusCode, String)
where
    B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
        + Send
        + Unpin
        + 'static,
{
    let response = client.request(request).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

pub(crate) async fn get(url: String) -> (StatusCode, String) {
    let request = http::Request::get(url).body(Full::<Bytes>::default());
    ask(&http1(), request.unwrap()).await
}

/// Sends these bytes and reads up to the end of the connection.
pub(crate) async fn exchange(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).await.unwrap();
    String::from_utf8(response).unwrap()
}
