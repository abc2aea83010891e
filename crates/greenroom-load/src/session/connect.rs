//! Connecting: the socket, and TLS where it is spoken.

use std::fmt::Display;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use socket2::{SockAddr, Socket};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream, UnixStream};
use tokio::time::sleep;
use tokio_rustls::TlsConnector;

use super::engine::Engine;
use crate::record::FailureKind;
use crate::run::{Address, Endpoint, socket};
use crate::tls;

/// The pause before another attempt, when a Unix socket's backlog is full.
const QUEUE_FULL_PAUSE: Duration = Duration::from_millis(1);

/// A byte stream that is read and written.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

/// A new connection, before its protocol begins.
pub(super) struct Transport {
    pub(super) stream: Box<dyn Duplex>,
    pub(super) tls: Option<Handshake>,
}

/// The outcome of a TLS handshake.
#[derive(Debug)]
pub(super) struct Handshake {
    /// Its description in the form of ab's report.
    pub(super) description: Option<String>,
    /// The protocol by ALPN.
    pub(super) protocol: Option<Vec<u8>>,
}

/// The failure of a request.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) kind: FailureKind,
    pub(super) detail: String,
}

impl Failure {
    pub(super) fn new(kind: FailureKind, detail: impl Display) -> Self {
        Self {
            kind,
            detail: detail.to_string(),
        }
    }

    fn of_connect(error: &io::Error) -> Self {
        Self::new(FailureKind::of_connect(error), error)
    }
}

/// Connects to an endpoint.
pub(super) async fn connect(engine: &Engine, endpoint: &Endpoint) -> Result<Transport, Failure> {
    let failure = |error| Failure::of_connect(&error);
    let window_bytes = engine.share.plan.window_bytes;
    match &endpoint.address {
        Address::Tcp(address) => {
            let stream = connect_tcp(*address, engine.next_source(), window_bytes).await;
            secure(stream.map_err(failure)?, endpoint).await
        }
        Address::Unix(path) => {
            let stream = connect_unix(path, window_bytes).await;
            secure(stream.map_err(failure)?, endpoint).await
        }
    }
}

async fn connect_tcp(
    address: SocketAddr,
    source: Option<IpAddr>,
    window_bytes: Option<usize>,
) -> io::Result<TcpStream> {
    let socket = socket(&Address::Tcp(address), source, window_bytes)?;
    let socket = TcpSocket::from_std_stream(socket.into());
    socket.set_nodelay(true)?;
    socket.connect(address).await
}

/// Connects to a Unix socket, again while the server's backlog is full: the kernel fails where it
/// would have to wait.
async fn connect_unix(path: &Path, window_bytes: Option<usize>) -> io::Result<UnixStream> {
    let socket = socket(&Address::Unix(path.to_owned()), None, window_bytes)?;
    let socket = Socket::from(socket);
    let address = SockAddr::unix(path)?;
    loop {
        match socket.connect(&address) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                sleep(QUEUE_FULL_PAUSE).await;
            }
            result => {
                result?;
                return UnixStream::from_std(OwnedFd::from(socket).into());
            }
        }
    }
}

async fn secure(stream: impl Duplex + 'static, endpoint: &Endpoint) -> Result<Transport, Failure> {
    match &endpoint.tls {
        None => Ok(Transport {
            stream: Box::new(stream),
            tls: None,
        }),
        Some((config, name)) => shake_hands(stream, config, name).await,
    }
}

async fn shake_hands(
    stream: impl Duplex + 'static,
    config: &Arc<ClientConfig>,
    name: &ServerName<'static>,
) -> Result<Transport, Failure> {
    let stream = TlsConnector::from(Arc::clone(config))
        .connect(name.clone(), stream)
        .await
        .map_err(|error| Failure::of_connect(&error))?;
    let (_, agreed) = stream.get_ref();
    let handshake = Handshake {
        description: tls::describe(agreed),
        protocol: agreed.alpn_protocol().map(<[u8]>::to_vec),
    };
    Ok(Transport {
        stream: Box::new(stream),
        tls: Some(handshake),
    })
}
