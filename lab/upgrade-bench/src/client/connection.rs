//! Connections over TCP, with TLS or without.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::counts::{Failed, Failure};

const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Time for what the system has received to go through TLS.
const LOOK: Duration = Duration::from_millis(2);

/// A connection's byte stream.
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Connects; over TLS too if there is a configuration. A small receive buffer makes a slow
    /// reader one that its server feels.
    pub(crate) async fn open(
        address: SocketAddr,
        tls: Option<&Arc<ClientConfig>>,
        receive_bytes: Option<u32>,
    ) -> Result<Self, Failed> {
        let connect = async {
            let socket = TcpSocket::new_v4()?;
            if let Some(bytes) = receive_bytes {
                socket.set_recv_buffer_size(bytes)?;
            }
            let stream = socket.connect(address).await?;
            stream.set_nodelay(true)?;
            Ok::<_, io::Error>(stream)
        };
        let refused = |error: &dyn std::fmt::Display| {
            Failed(Failure::Refused, format!("connecting: {error}"))
        };
        let stream = match timeout(CONNECT_MAX, connect).await {
            Ok(connected) => connected.map_err(|error| refused(&error))?,
            Err(late) => return Err(refused(&late)),
        };
        let Some(tls) = tls else {
            return Ok(Self::Plain(stream));
        };
        let connector = TlsConnector::from(Arc::clone(tls));
        let name = ServerName::IpAddress(address.ip().into());
        match timeout(CONNECT_MAX, connector.connect(name, stream)).await {
            Ok(Ok(stream)) => Ok(Self::Tls(Box::new(stream))),
            Ok(Err(error)) => Err(refused(&format!("handshake of TLS: {error}"))),
            Err(late) => Err(refused(&format!("handshake of TLS: {late}"))),
        }
    }

    /// Tells whether the server has ended the connection, as far as this machine knows: the system
    /// is asked, since the runtime may know less.
    pub(crate) async fn has_ended(&mut self) -> bool {
        let mut byte = [0];
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        match recv(self.tcp().as_raw_fd(), &mut byte, flags) {
            Err(Errno::EAGAIN | Errno::EINTR) => false,
            Ok(0) | Err(_) => true,
            // Over TLS it may be a ticket, or the alert of an end. Anything else between two
            // responses is a reason to leave.
            Ok(_) => timeout(LOOK, self.read(&mut [0; 64])).await.is_ok(),
        }
    }

    fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => stream.get_ref().0,
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
