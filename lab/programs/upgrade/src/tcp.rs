//! Connections over TCP, with TLS or without.

use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::failure::{Failed, Failure, within};

const CONNECT_MAX: Duration = Duration::from_secs(10);
/// The longest wait for a response.
pub(crate) const RESPONSE_MAX: Duration = Duration::from_secs(10);
/// Time for what the system has received to go through TLS.
const LOOK: Duration = Duration::from_millis(2);

/// A stream of bytes in both directions.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

/// A connection.
pub(crate) struct Stream {
    pub(crate) bytes: Box<dyn Duplex>,
    descriptor: RawFd,
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
            let descriptor = stream.as_raw_fd();
            let bytes: Box<dyn Duplex> = match tls {
                None => Box::new(stream),
                Some(tls) => {
                    let name = ServerName::IpAddress(address.ip().into());
                    let connector = TlsConnector::from(Arc::clone(tls));
                    Box::new(connector.connect(name, stream).await?)
                }
            };
            Ok::<_, Failed>(Self { bytes, descriptor })
        };
        let connected = within(CONNECT_MAX, connect).await;
        connected.map_err(|Failed(_, why)| Failure::Refused.by(format!("connecting: {why}")))
    }

    /// Tells whether the server has ended the connection, as far as this machine knows: the system
    /// is asked, since the runtime may know less.
    pub(crate) async fn has_ended(&mut self) -> bool {
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        match recv(self.descriptor, &mut [0], flags) {
            Err(Errno::EAGAIN | Errno::EINTR) => false,
            Ok(0) | Err(_) => true,
            // Over TLS it may be a ticket, or the alert of an end. Anything else between two
            // responses is a reason to leave.
            Ok(_) => timeout(LOOK, self.bytes.read(&mut [0; 64])).await.is_ok(),
        }
    }

    /// Sends bytes; returns false if a connection that had served before took none.
    pub(crate) async fn send(&mut self, bytes: &[u8], is_reused: bool) -> Result<bool, Failed> {
        let send = async {
            let mut sent = 0;
            while sent < bytes.len() {
                match self.bytes.write(&bytes[sent..]).await {
                    Ok(0) => return Err(Failure::Ended.by("no bytes are taken")),
                    Ok(count) => sent += count,
                    Err(_) if sent == 0 && is_reused => return Ok(false),
                    Err(error) => return Err(error.into()),
                }
            }
            self.bytes.flush().await?;
            Ok(true)
        };
        within(RESPONSE_MAX, send).await
    }
}
