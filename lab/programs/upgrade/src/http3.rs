//! Clients of HTTP/3: requests, on connections of their own or on one that is kept, and downloads.
//!
//! A stream that the server says it has not begun may be sent again: after a GOAWAY (RFC 9114,
//! 5.2), or refused by `H3_REQUEST_REJECTED` (8.1). Every other one must get its response.

use std::future::poll_fn;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use h3::client::{RequestStream, SendRequest};
use h3::error::{Code, StreamError};
use h3_quinn::{BidiStream, OpenStreams};
use http::Request;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Endpoint, EndpointConfig, TokioRuntime, TransportConfig};

use crate::HELLO;
use crate::failure::{Failed, Failure, within};
use crate::http1::BUSY;
use crate::load::{Client, Fault};
use crate::tcp::RESPONSE_MAX;
use crate::transfer;

/// So little of a download is on its way unread.
const WINDOW_BYTES: u32 = 256 * 1024;
/// The server's name in its certificate.
const NAME: &str = "localhost";

type Stream = RequestStream<BidiStream<Bytes>, Bytes>;

/// A client's socket, and the connection that it keeps.
struct Socket<'a> {
    client: &'a Client,
    endpoint: Endpoint,
    config: ClientConfig,
    kept: Option<Connection>,
}

#[derive(Clone)]
struct Connection {
    quic: quinn::Connection,
    send: SendRequest<OpenStreams, Bytes>,
}

/// Sends requests until the load ends: every second client each on a connection of its own.
pub(crate) async fn run(client: &Client) {
    let mut socket = Socket::new(client);
    let keeps = client.index.is_multiple_of(2);
    let once = async || {
        let begin = Instant::now();
        let outcome = socket.request(keeps).await;
        client.longest(begin.elapsed());
        outcome
    };
    client.repeat(BUSY, once).await;
    socket.end().await;
}

/// Makes downloads until the load ends, each on a connection of its own.
pub(crate) async fn downloads(client: &Client) {
    let mut socket = Socket::new(client);
    client
        .transfers(async || Box::pin(socket.download()).await)
        .await;
    socket.end().await;
}

impl<'a> Socket<'a> {
    fn new(client: &'a Client) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("there is a free port");
        let runtime = Arc::new(TokioRuntime);
        let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, runtime);
        let crypto = QuicClientConfig::try_from(client.tls("h3"));
        let mut config = ClientConfig::new(Arc::new(crypto.expect("the suites are QUIC's")));
        let mut transport = TransportConfig::default();
        transport.stream_receive_window(WINDOW_BYTES.into());
        config.transport_config(Arc::new(transport));
        Self {
            client,
            endpoint: endpoint.expect("a socket can be used"),
            config,
            kept: None,
        }
    }

    async fn request(&mut self, keeps: bool) -> Result<(), Failed> {
        let (connection, mut stream) = self.begin("/hello").await?;
        let whole = async {
            let mut body = Vec::new();
            while let Some(piece) = piece(&mut stream).await? {
                body.extend_from_slice(&piece);
            }
            Ok::<_, Failed>(body)
        };
        let body = within(RESPONSE_MAX, whole).await?;
        if body != HELLO.as_bytes() {
            let text = format!("{:?}", String::from_utf8_lossy(&body));
            return Err(Failure::Wrong.by(text));
        }
        if keeps {
            self.kept = Some(connection);
        } else {
            connection.close();
        }
        Ok(())
    }

    async fn download(&mut self) -> Result<(), Failed> {
        let path = transfer::download_path(self.client);
        let (connection, mut stream) = self.begin(&path).await?;
        transfer::read(self.client, async |_| piece(&mut stream).await).await?;
        connection.close();
        Ok(())
    }

    /// Sends a request, and receives the head of its response.
    async fn begin(&mut self, path: &str) -> Result<(Connection, Stream), Failed> {
        let client = self.client;
        let attempt = async || {
            let connection = match self.kept.take().filter(Connection::is_open) {
                Some(kept) => kept,
                None => self.connect().await?,
            };
            let uri = format!("https://{}{path}", client.options.tls);
            let ask = async { Ok::<_, Failed>(connection.clone().ask(uri).await) };
            let stream = within(RESPONSE_MAX, ask).await??;
            Ok((connection, stream))
        };
        client.begun(attempt).await
    }

    async fn connect(&self) -> Result<Connection, Failed> {
        let connect = async {
            let refused = |error: String| Failure::Refused.by(format!("by QUIC: {error}"));
            let (config, address) = (self.config.clone(), self.client.options.tls);
            let connecting = self.endpoint.connect_with(config, address, NAME);
            let connecting = connecting.map_err(|error| refused(error.to_string()))?;
            let quic = connecting
                .await
                .map_err(|error| refused(error.to_string()))?;
            let client = h3::client::new(h3_quinn::Connection::new(quic.clone())).await;
            let (mut driver, send) = client.map_err(|error| refused(error.to_string()))?;
            // It ends with the connection. Its errors reach the streams, too.
            tokio::spawn(async move { poll_fn(|cx| driver.poll_close(cx)).await });
            Ok::<_, Failed>(Connection { quic, send })
        };
        let connected = within(RESPONSE_MAX, connect).await;
        connected.map_err(|Failed(_, why)| Failure::Refused.by(why))
    }

    /// Has the server know of the end of all connections.
    async fn end(self) {
        self.endpoint.close(0_u32.into(), b"");
        let _elapsed =
            tokio::time::timeout(Duration::from_secs(1), self.endpoint.wait_idle()).await;
    }
}

impl Connection {
    fn is_open(&self) -> bool {
        self.quic.close_reason().is_none()
    }

    fn close(&self) {
        let code = u32::try_from(Code::H3_NO_ERROR.value()).unwrap_or_default();
        self.quic.close(code.into(), b"");
    }

    async fn ask(mut self, uri: String) -> Result<Stream, Fault> {
        let head = Request::get(uri).body(()).expect("the URI is valid");
        let mut stream = self.send.send_request(head).await.map_err(judged)?;
        stream.finish().await.map_err(judged)?;
        let status = stream.recv_response().await.map_err(judged)?.status();
        if status != 200 {
            return Err(Failure::Wrong.by(format!("status {status}")).into());
        }
        Ok(stream)
    }
}

/// Reads the next bytes of a body.
async fn piece(stream: &mut Stream) -> Result<Option<Bytes>, Failed> {
    let data = stream.recv_data().await.map_err(|error| failed(&error))?;
    Ok(data.map(|mut data| data.copy_to_bytes(data.remaining())))
}

#[expect(clippy::needless_pass_by_value, reason = "it maps errors")]
fn judged(error: StreamError) -> Fault {
    match &error {
        StreamError::RemoteClosing { .. }
        | StreamError::RemoteTerminate {
            code: Code::H3_REQUEST_REJECTED,
            ..
        } => Fault::NotBegun,
        error => Fault::Failed(failed(error)),
    }
}

fn failed(error: &StreamError) -> Failed {
    let failure = match error {
        error if error.is_h3_no_error() => Failure::Ended,
        StreamError::RemoteTerminate { .. } | StreamError::ConnectionError { .. } => Failure::Reset,
        _ => Failure::Wrong,
    };
    failure.by(format!("HTTP/3: {error}"))
}
