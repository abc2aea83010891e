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
use tokio::time::timeout;

use super::exchange::{RESPONSE_MAX, late};
use super::http1::BUSY;
use super::transfer::{DOWNLOADED_A_TICK, Pace, check, ticks};
use super::{HELLO, Load};
use crate::counts::{Counts, Failed, Failure};

const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Connections on which one request is tried that none of them began.
const TRIES_MAX: usize = 5;
/// So little of a download is on its way unread.
const WINDOW_BYTES: u32 = 256 * 1024;
/// The server's name in its certificate.
const NAME: &str = "localhost";

type Stream = RequestStream<BidiStream<Bytes>, Bytes>;

/// A client: its socket, and the connection that it keeps.
struct Client {
    endpoint: Endpoint,
    config: ClientConfig,
    kept: Option<Connection>,
}

#[derive(Clone)]
struct Connection {
    quic: quinn::Connection,
    send: SendRequest<OpenStreams, Bytes>,
}

enum Fault {
    /// The server has not begun it.
    NotBegun,
    Failed(Failed),
}

/// Sends requests until the load ends: each on a connection of its own, or all on one.
pub(crate) async fn run(load: Load, keeps: bool) -> Counts {
    let mut counts = Counts::default();
    let mut client = Client::new(&load);
    while load.goes_on() {
        let begin = Instant::now();
        let outcome = client.request(&load, keeps, &mut counts).await;
        counts.slowest = counts.slowest.max(begin.elapsed());
        let has_failed = outcome.is_err();
        counts.count(outcome, load.seconds());
        load.pause(BUSY, has_failed).await;
    }
    client.end().await;
    counts
}

/// Begins one download after the other until the load ends, each on a connection of its own.
pub(crate) async fn download(load: Load, delay: f64) -> Counts {
    let mut counts = Counts::default();
    let mut client = Client::new(&load);
    load.wait(load.transfer.mul_f64(delay)).await;
    while load.goes_on() {
        let outcome = client.download(&load, &mut counts).await;
        let has_failed = outcome.is_err();
        counts.count(outcome, load.seconds());
        load.pause(BUSY, has_failed).await;
    }
    client.end().await;
    counts
}

impl Client {
    fn new(load: &Load) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("there is a free port");
        let runtime = Arc::new(TokioRuntime);
        let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, runtime);
        let tls = (*load.http3).clone();
        let crypto = QuicClientConfig::try_from(tls).expect("the suites are those of QUIC");
        let mut config = ClientConfig::new(Arc::new(crypto));
        let mut transport = TransportConfig::default();
        transport.stream_receive_window(WINDOW_BYTES.into());
        config.transport_config(Arc::new(transport));
        Self {
            endpoint: endpoint.expect("a socket can be used"),
            config,
            kept: None,
        }
    }

    async fn request(
        &mut self,
        load: &Load,
        keeps: bool,
        counts: &mut Counts,
    ) -> Result<(), Failed> {
        let (connection, mut stream) = self.begin(load, "/hello", counts).await?;
        let whole = async {
            let mut body = Vec::new();
            while let Some(mut data) = stream.recv_data().await? {
                body.extend_from_slice(&data.copy_to_bytes(data.remaining()));
            }
            Ok::<_, StreamError>(body)
        };
        let body = timeout(RESPONSE_MAX, whole).await;
        let body = body.map_err(|_| late("no response"))?.map_err(failed)?;
        if body != HELLO.as_bytes() {
            let text = format!("{:?}", String::from_utf8_lossy(&body));
            return Err(Failed(Failure::Wrong, text));
        }
        if keeps {
            self.kept = Some(connection);
        } else {
            connection.close();
        }
        Ok(())
    }

    async fn download(&mut self, load: &Load, counts: &mut Counts) -> Result<(), Failed> {
        let length = ticks(load) * DOWNLOADED_A_TICK;
        let path = format!("/bytes/{length}");
        let (connection, mut stream) = self.begin(load, &path, counts).await?;
        let mut pace = Pace::new(load);
        let mut read = 0;
        let whole = async {
            while let Some(until) = pace.next().await {
                while read < until {
                    let Some(mut data) = stream.recv_data().await.map_err(failed)? else {
                        let text = format!("{read} of {length} bytes");
                        return Err(Failed(Failure::Ended, text));
                    };
                    let bytes = data.copy_to_bytes(data.remaining());
                    let checked = check(&bytes, &mut read);
                    checked.map_err(|error| Failed::of(&error, "reading"))?;
                }
            }
            Ok(())
        };
        let outcome = timeout(load.transfer + super::transfer::GRACE, whole).await;
        outcome.unwrap_or_else(|_| Err(late("the download is not over")))?;
        connection.close();
        Ok(())
    }

    /// Sends a request, and receives the head of its response.
    async fn begin(
        &mut self,
        load: &Load,
        path: &str,
        counts: &mut Counts,
    ) -> Result<(Connection, Stream), Failed> {
        for _ in 0..TRIES_MAX {
            let connection = match self.kept.take().filter(Connection::is_open) {
                Some(kept) => kept,
                None => self.connect(load).await?,
            };
            let head = timeout(RESPONSE_MAX, connection.clone().ask(load, path)).await;
            match head.unwrap_or_else(|_| Err(Fault::Failed(late("no response")))) {
                Ok(stream) => return Ok((connection, stream)),
                Err(Fault::Failed(failed)) => return Err(failed),
                Err(Fault::NotBegun) => counts.retried += 1,
            }
        }
        let text = format!("{TRIES_MAX} connections did not begin it");
        Err(Failed(Failure::Refused, text))
    }

    async fn connect(&self, load: &Load) -> Result<Connection, Failed> {
        let refused = |error: &dyn std::fmt::Display| {
            Failed(Failure::Refused, format!("connecting by QUIC: {error}"))
        };
        let config = self.config.clone();
        let connecting = self.endpoint.connect_with(config, load.target.tls, NAME);
        let connecting = connecting.map_err(|error| refused(&error))?;
        let quic = match timeout(CONNECT_MAX, connecting).await {
            Ok(connected) => connected.map_err(|error| refused(&error))?,
            Err(late) => return Err(refused(&late)),
        };
        let (mut driver, send) = h3::client::new(h3_quinn::Connection::new(quic.clone()))
            .await
            .map_err(|error| refused(&error))?;
        // It ends with the connection. Its errors reach the streams, too.
        tokio::spawn(async move { poll_fn(|cx| driver.poll_close(cx)).await });
        Ok(Connection { quic, send })
    }

    /// Has the server know of the end of all connections.
    async fn end(self) {
        self.endpoint.close(0_u32.into(), b"");
        let _elapsed = timeout(Duration::from_secs(1), self.endpoint.wait_idle()).await;
    }
}

impl Connection {
    fn is_open(&self) -> bool {
        self.quic.close_reason().is_none()
    }

    fn close(&self) {
        let code = Code::H3_NO_ERROR.value();
        self.quic
            .close(u32::try_from(code).unwrap_or_default().into(), b"");
    }

    async fn ask(mut self, load: &Load, path: &str) -> Result<Stream, Fault> {
        let uri = format!("https://{}{path}", load.target.tls);
        let head = Request::get(uri).body(()).expect("the URI is valid");
        let mut stream = self.send.send_request(head).await.map_err(judge)?;
        stream.finish().await.map_err(judge)?;
        let head = stream.recv_response().await.map_err(judge)?;
        if head.status() != 200 {
            let text = format!("status {}", head.status());
            return Err(Fault::Failed(Failed(Failure::Wrong, text)));
        }
        Ok(stream)
    }
}

fn judge(error: StreamError) -> Fault {
    match error {
        StreamError::RemoteClosing { .. }
        | StreamError::RemoteTerminate {
            code: Code::H3_REQUEST_REJECTED,
            ..
        } => Fault::NotBegun,
        error => Fault::Failed(failed(error)),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it maps errors")]
fn failed(error: StreamError) -> Failed {
    let failure = match &error {
        error if error.is_h3_no_error() => Failure::Ended,
        StreamError::RemoteTerminate { .. } | StreamError::ConnectionError { .. } => Failure::Reset,
        _ => Failure::Wrong,
    };
    Failed(failure, format!("HTTP/3: {error}"))
}
