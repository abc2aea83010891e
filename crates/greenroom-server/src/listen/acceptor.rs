//! Connections that the application accepts: over TLS, in memory, or however it likes.

use std::any::Any;
use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::{Accepted, AcceptedSocket, Security, UNSENT_BYTES_MAX};
use crate::{Address, ConnectionInfo};

/// Accepts connections for a server beside its own listeners, such as those of a TLS library.
///
/// It is asked on the runtime of whoever calls [`Server::serve`](crate::Server::serve), for one
/// connection after the other, and the connections go to the loop that has the fewest.
pub trait Acceptor: fmt::Debug + Send + 'static {
    /// Waits for the next connection. What fails is its own to log and to try again. The future is
    /// dropped, and the acceptor after it, when the server drains.
    fn accept(&mut self) -> Pin<Box<dyn Future<Output = AcceptedStream> + Send + '_>>;

    /// Returns the address that it listens on, for
    /// [`Server::local_addresses`](crate::Server::local_addresses). A listener without an address
    /// that [`Address`] can tell says a Unix socket without a path.
    fn local_address(&self) -> Address;
}

/// A connection that an [`Acceptor`] accepted.
#[derive(Debug)]
pub struct AcceptedStream(Accepted);

impl AcceptedStream {
    /// Takes any stream of bytes. A `TcpStream` or `UnixStream` of tokio is served as one that the
    /// server accepted itself: it changes to the runtime of its loop. Any other stays with the
    /// runtime that drives it.
    ///
    /// # Errors
    ///
    /// If such a socket cannot leave its runtime.
    pub fn new<S>(stream: S, info: ConnectionInfo) -> io::Result<Self>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        Ok(Self(Accepted {
            socket: recognised(stream)?,
            info,
            deferred: false,
            is_proxied: false,
            security: Security::None,
            input: Vec::new(),
            permit: None,
        }))
    }

    pub(crate) fn into_accepted(self) -> Accepted {
        self.0
    }
}

/// The type of a stream is known only to its acceptor; the two that a loop can serve faster are
/// found out here.
fn recognised<S>(stream: S) -> io::Result<AcceptedSocket>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut stream = Some(stream);
    let any: &mut dyn Any = &mut stream;
    if let Some(tcp) = any
        .downcast_mut::<Option<TcpStream>>()
        .and_then(Option::take)
    {
        let tcp = tcp.into_std()?;
        socket2::SockRef::from(&tcp).set_tcp_notsent_lowat(UNSENT_BYTES_MAX)?;
        return Ok(AcceptedSocket::Tcp(tcp));
    }
    if let Some(unix) = any
        .downcast_mut::<Option<UnixStream>>()
        .and_then(Option::take)
    {
        return Ok(AcceptedSocket::Unix(unix.into_std()?));
    }
    let stream = stream.expect("it is neither, so nobody took it");
    Ok(AcceptedSocket::Any(AnyStream(Box::new(stream))))
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A stream of bytes of a type that the server does not know.
pub(crate) struct AnyStream(Box<dyn Stream>);

impl AnyStream {
    /// Reads into `room`: how many bytes, 0 at the end of the stream.
    pub(crate) fn poll_read(
        &mut self,
        room: &mut [u8],
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(room);
        ready!(Pin::new(&mut self.0).poll_read(cx, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }

    /// Writes some of the parts, in their order.
    pub(crate) fn poll_write(
        &mut self,
        parts: &[IoSlice<'_>],
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let stream = Pin::new(&mut self.0);
        match parts.iter().find(|part| !part.is_empty()) {
            Some(first) if !stream.is_write_vectored() => stream.poll_write(cx, first),
            _ => stream.poll_write_vectored(cx, parts),
        }
    }

    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

impl fmt::Debug for AnyStream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AnyStream").finish_non_exhaustive()
    }
}
