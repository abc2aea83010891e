//! A server with HTTP/3, and h3's own client.

use std::future::poll_fn;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use greenroom_server::{Address, App, DrainReport, Error, Handle, Limits, Server, ServerBuilder};
use h3::client::{RequestStream, SendRequest};
use h3::error::{ConnectionError, StreamError};
use h3_quinn::{BidiStream, OpenStreams};
use http::{HeaderMap, Request, StatusCode};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Endpoint, TransportConfig};
use tokio::task::{JoinHandle, spawn_local};

use crate::over::{NAME, client_config, tls};

pub(super) type Stream = RequestStream<BidiStream<Bytes>, Bytes>;

/// A server with one loop, on this thread.
pub(super) struct Rig {
    pub(super) handle: Handle,
    pub(super) serving: JoinHandle<Result<DrainReport, Error>>,
    pub(super) address: SocketAddr,
}

impl Rig {
    pub(super) fn start(app: impl App) -> Self {
        Self::with(app, |builder| builder)
    }

    pub(super) fn limited(app: impl App, limits: Limits) -> Self {
        Self::with(app, |builder| builder.limits(limits))
    }

    pub(super) fn with(app: impl App, set: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Self {
        let builder = Server::builder()
            .loops(1.try_into().unwrap())
            .listen("127.0.0.1:0")
            .tls(tls().build().unwrap())
            .http3(true);
        let server = set(builder).bind().unwrap();
        let Address::Tcp(address) = server.local_addresses()[0] else {
            panic!("it is a TCP address");
        };
        Self {
            handle: server.handle(),
            serving: spawn_local(server.serve_local(app)),
            address,
        }
    }

    pub(super) async fn connect(&self) -> Client {
        let connecting = Client::connect(self.address, client());
        Box::pin(connecting).await.unwrap()
    }

    pub(super) async fn ended(self) -> DrainReport {
        self.serving.await.unwrap().unwrap()
    }
}

/// The settings of a client that trusts the CA.
pub(super) fn client() -> ClientConfig {
    client_with(client_config(), TransportConfig::default())
}

pub(super) fn client_with(
    mut tls: rustls::ClientConfig,
    transport: TransportConfig,
) -> ClientConfig {
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let crypto = QuicClientConfig::try_from(tls).unwrap();
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.transport_config(Arc::new(transport));
    config
}

pub(super) fn endpoint() -> Endpoint {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let runtime = Arc::new(quinn::TokioRuntime);
    Endpoint::new(quinn::EndpointConfig::default(), None, socket, runtime).unwrap()
}

pub(super) struct Client {
    pub(super) endpoint: Endpoint,
    pub(super) connection: quinn::Connection,
    pub(super) send: SendRequest<OpenStreams, Bytes>,
    /// Ends with the connection.
    pub(super) driver: JoinHandle<ConnectionError>,
}

impl Client {
    pub(super) async fn connect(
        address: SocketAddr,
        config: ClientConfig,
    ) -> Result<Self, quinn::ConnectionError> {
        let endpoint = endpoint();
        let connecting = endpoint.connect_with(config, address, NAME).unwrap();
        let connection = connecting.await?;
        let quic = h3_quinn::Connection::new(connection.clone());
        let built = Box::pin(h3::client::new(quic)).await;
        let Ok((mut driver, send)) = built else {
            return Err(connection.closed().await);
        };
        let driver = async move { poll_fn(|cx| driver.poll_close(cx)).await };
        Ok(Self {
            endpoint,
            connection,
            send,
            driver: spawn_local(driver),
        })
    }

    /// Sends the head of a request.
    pub(super) async fn begin(&self, request: Request<()>) -> Result<Stream, StreamError> {
        self.send.clone().send_request(request).await
    }

    /// Sends a request whole, and receives its response whole.
    pub(super) async fn try_ask(&self, request: Request<Bytes>) -> Result<Response, StreamError> {
        let (head, body) = request.into_parts();
        let mut stream = self.begin(Request::from_parts(head, ())).await?;
        if !body.is_empty() {
            stream.send_data(body).await?;
        }
        stream.finish().await?;
        receive(&mut stream).await
    }

    /// The same, and it cannot fail.
    pub(super) async fn ask(&self, request: Request<Bytes>) -> Response {
        Box::pin(self.try_ask(request)).await.unwrap()
    }

    pub(super) async fn post(&self, path: &str, body: impl Into<Bytes>) -> (StatusCode, String) {
        let request = Request::post(uri(path)).body(body.into()).unwrap();
        let response = self.ask(request).await;
        (response.head.status(), response.text())
    }

    pub(super) async fn get(&self, path: &str) -> (StatusCode, String) {
        let request = Request::get(uri(path)).body(Bytes::new()).unwrap();
        let response = self.ask(request).await;
        (response.head.status(), response.text())
    }
}

pub(super) fn uri(path: &str) -> String {
    format!("https://{NAME}{path}")
}

/// A response.
pub(super) struct Response {
    pub(super) head: http::Response<()>,
    pub(super) body: Vec<u8>,
    pub(super) trailers: Option<HeaderMap>,
}

impl Response {
    pub(super) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

/// Receives a response whole.
pub(super) async fn receive(stream: &mut Stream) -> Result<Response, StreamError> {
    let head = stream.recv_response().await?;
    let mut body = Vec::new();
    while let Some(mut data) = stream.recv_data().await? {
        let bytes = data.copy_to_bytes(data.remaining());
        body.extend_from_slice(&bytes);
    }
    let trailers = stream.recv_trailers().await?;
    Ok(Response {
        head,
        body,
        trailers,
    })
}
