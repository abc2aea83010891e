use std::io::{self, IoSlice, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use crate::listen::AcceptedSocket;

/// A client's socket: as accepted, and after it had to wait, registered with the loop's runtime.
///
/// A connection that is answered at once never costs a registration. While it is fresh, "not
/// ready" wakes nobody: whoever polls it registers it and polls again.
#[derive(Debug)]
pub(crate) enum Socket {
    Fresh(AcceptedSocket),
    Tcp(TcpStream),
    Unix(UnixStream),
    /// Taken away, or closed.
    Gone,
}

impl Socket {
    /// Registers a fresh socket with the runtime of this thread.
    pub(crate) fn register(&mut self) -> io::Result<()> {
        let fresh = match std::mem::replace(self, Self::Gone) {
            Self::Fresh(fresh) => fresh,
            registered => {
                *self = registered;
                return Ok(());
            }
        };
        *self = match fresh {
            AcceptedSocket::Tcp(stream) => Self::Tcp(TcpStream::from_std(stream)?),
            AcceptedSocket::Unix(stream) => Self::Unix(UnixStream::from_std(stream)?),
        };
        Ok(())
    }

    /// Reads into `room`: how many bytes, 0 at the end of the stream.
    pub(crate) fn poll_read(
        &mut self,
        room: &mut [u8],
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Fresh(AcceptedSocket::Tcp(stream)) => or_pending(stream.read(room)),
            Self::Fresh(AcceptedSocket::Unix(stream)) => or_pending(stream.read(room)),
            Self::Tcp(stream) => poll_read(stream, room, cx),
            Self::Unix(stream) => poll_read(stream, room, cx),
            Self::Gone => Poll::Ready(Ok(0)),
        }
    }

    /// Writes some of `first` and then `second`: how many bytes of the two together.
    pub(crate) fn poll_write(
        &mut self,
        first: &[u8],
        second: &[u8],
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if second.is_empty() {
            return self.poll_write_one(first, cx);
        }
        let parts = [IoSlice::new(first), IoSlice::new(second)];
        match self {
            Self::Fresh(AcceptedSocket::Tcp(stream)) => or_pending(stream.write_vectored(&parts)),
            Self::Fresh(AcceptedSocket::Unix(stream)) => or_pending(stream.write_vectored(&parts)),
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, &parts),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, &parts),
            Self::Gone => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    fn poll_write_one(&mut self, bytes: &[u8], cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match self {
            Self::Fresh(AcceptedSocket::Tcp(stream)) => or_pending(stream.write(bytes)),
            Self::Fresh(AcceptedSocket::Unix(stream)) => or_pending(stream.write(bytes)),
            // There is room nearly always, and then to try is cheaper.
            Self::Tcp(stream) => match stream.try_write(bytes) {
                Err(error) if would_block(&error) => Pin::new(stream).poll_write(cx, bytes),
                tried => Poll::Ready(tried),
            },
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Gone => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    /// Ends our side of the stream; the client may still send.
    pub(crate) fn shutdown_write(&self) {
        use rustix::net::{Shutdown, shutdown};
        // The client may be gone already; the connection ends either way.
        let _ended = match self {
            Self::Fresh(AcceptedSocket::Tcp(stream)) => shutdown(stream, Shutdown::Write),
            Self::Fresh(AcceptedSocket::Unix(stream)) => shutdown(stream, Shutdown::Write),
            Self::Tcp(stream) => shutdown(stream, Shutdown::Write),
            Self::Unix(stream) => shutdown(stream, Shutdown::Write),
            Self::Gone => Ok(()),
        };
    }
}

fn would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

fn or_pending(done: io::Result<usize>) -> Poll<io::Result<usize>> {
    match done {
        Err(error) if would_block(&error) => Poll::Pending,
        // No signal handler of ours interrupts a system call for long: try when polled again.
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Poll::Pending,
        done => Poll::Ready(done),
    }
}

fn poll_read(
    stream: &mut (impl AsyncRead + Unpin),
    room: &mut [u8],
    cx: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    let mut buffer = ReadBuf::new(room);
    ready!(Pin::new(stream).poll_read(cx, &mut buffer))?;
    Poll::Ready(Ok(buffer.filled().len()))
}
