use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::sendfile;
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{RecvFlags, SendFlags};
use tokio::io::{AsyncWrite, Interest};
use tokio::net::{TcpStream, UnixStream};

use crate::listen::{AcceptedSocket, AnyStream};
#[cfg(feature = "tls")]
use crate::tls::TlsStream;

const READ: Interest = Interest::READABLE;

/// A client's socket: as accepted, and after it had to wait, registered with the loop's runtime.
///
/// A connection that is served at once never costs a registration. While it is fresh, "not ready"
/// wakes nobody: whoever polls it registers it and polls again.
#[derive(Debug)]
pub(crate) enum Socket {
    Fresh(AcceptedSocket),
    Tcp(TcpStream),
    Unix(UnixStream),
    /// Of a type of the application's own. It knows its runtime, and is never fresh.
    Any(AnyStream),
    /// Of any of the others, with TLS on it: registered, and past its handshake.
    #[cfg(feature = "tls")]
    Tls(Box<TlsStream>),
    /// Taken away, or closed.
    Gone,
}

impl From<AcceptedSocket> for Socket {
    fn from(accepted: AcceptedSocket) -> Self {
        match accepted {
            AcceptedSocket::Any(stream) => Self::Any(stream),
            #[cfg(feature = "tls")]
            AcceptedSocket::Tls(stream) => Self::Tls(stream),
            fresh => Self::Fresh(fresh),
        }
    }
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
            AcceptedSocket::Any(stream) => Self::Any(stream),
            #[cfg(feature = "tls")]
            AcceptedSocket::Tls(stream) => Self::Tls(stream),
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
            Self::Fresh(AcceptedSocket::Tcp(stream)) => or_pending(recv(stream, room)),
            Self::Fresh(AcceptedSocket::Unix(stream)) => or_pending(recv(stream, room)),
            Self::Tcp(stream) => {
                let stream = &*stream;
                let ready = |cx: &mut Context<'_>| stream.poll_read_ready(cx);
                let once = || exhaust(stream, room, |io| stream.try_io(READ, io));
                poll_io(ready, once, cx)
            }
            Self::Unix(stream) => {
                let stream = &*stream;
                let ready = |cx: &mut Context<'_>| stream.poll_read_ready(cx);
                let once = || exhaust(stream, room, |io| stream.try_io(READ, io));
                poll_io(ready, once, cx)
            }
            Self::Any(stream) | Self::Fresh(AcceptedSocket::Any(stream)) => {
                stream.poll_read(room, cx)
            }
            #[cfg(feature = "tls")]
            Self::Tls(stream) | Self::Fresh(AcceptedSocket::Tls(stream)) => {
                stream.poll_read(room, cx)
            }
            Self::Gone => Poll::Ready(Ok(0)),
        }
    }

    /// Reads what has come by now, whether or not the runtime knows of it yet. Pending means that
    /// there is nothing; nobody is woken when there is.
    pub(crate) fn look(
        &mut self,
        room: &mut [u8],
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => or_pending(recv(&*stream, room)),
            Self::Unix(stream) => or_pending(recv(&*stream, room)),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.look(room, cx),
            other => other.poll_read(room, cx),
        }
    }

    /// Writes what the system takes by now, whether or not the runtime knows that it would: how
    /// many bytes, which may be none although the system took some of what was written before. Of
    /// a stream of another type only the runtime knows.
    pub(crate) fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.try_write(bytes),
            Self::Tcp(stream) => send(stream, bytes, SendFlags::NOSIGNAL),
            Self::Unix(stream) => send(stream, bytes, SendFlags::NOSIGNAL),
            _ => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Returns `true` if a file can be sent without a copy.
    pub(crate) fn sends_files(&self) -> bool {
        matches!(
            self,
            Self::Tcp(_)
                | Self::Unix(_)
                | Self::Fresh(AcceptedSocket::Tcp(_) | AcceptedSocket::Unix(_))
        )
    }

    /// Sends some of these bytes of a file: how many, 0 at the file's end.
    pub(crate) fn poll_send_file(
        &mut self,
        file: &File,
        offset: u64,
        length: u64,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<u64>> {
        match self {
            Self::Tcp(stream) => {
                let stream = &*stream;
                let once = || send_file(stream, file, offset, length);
                let ready = |cx: &mut Context<'_>| stream.poll_write_ready(cx);
                poll_io(ready, || stream.try_io(Interest::WRITABLE, once), cx)
            }
            Self::Unix(stream) => {
                let stream = &*stream;
                let once = || send_file(stream, file, offset, length);
                let ready = |cx: &mut Context<'_>| stream.poll_write_ready(cx);
                poll_io(ready, || stream.try_io(Interest::WRITABLE, once), cx)
            }
            other => or_pending(other.try_send_file(file, offset, length)),
        }
    }

    /// Sends as [`poll_send_file`](Self::poll_send_file) what the system takes by now, whether or
    /// not the runtime knows that it would.
    pub(crate) fn try_send_file(
        &mut self,
        file: &File,
        offset: u64,
        length: u64,
    ) -> io::Result<u64> {
        match self {
            Self::Fresh(AcceptedSocket::Tcp(stream)) => send_file(stream, file, offset, length),
            Self::Fresh(AcceptedSocket::Unix(stream)) => send_file(stream, file, offset, length),
            Self::Tcp(stream) => send_file(stream, file, offset, length),
            Self::Unix(stream) => send_file(stream, file, offset, length),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Bytes that were written to a stream that keeps them, and not taken by the system so far.
    pub(crate) fn behind(&self) -> usize {
        match self {
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.behind(),
            _ => 0,
        }
    }

    pub(crate) fn is_tls(&self) -> bool {
        match self {
            #[cfg(feature = "tls")]
            Self::Tls(_) => true,
            _ => false,
        }
    }

    /// Bytes that the stream holds while it waits.
    pub(crate) fn held(&self) -> usize {
        match self {
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.held(),
            _ => 0,
        }
    }

    /// Writes some of `first`, then of `second` and `third`: how many bytes of the three together.
    pub(crate) fn poll_write(
        &mut self,
        first: &[u8],
        second: &[u8],
        third: &[u8],
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if second.is_empty() && third.is_empty() {
            return self.poll_write_one(first, SendFlags::NOSIGNAL, cx);
        }
        let parts = [first, second, third].map(IoSlice::new);
        match self {
            Self::Fresh(AcceptedSocket::Tcp(stream)) => or_pending(stream.write_vectored(&parts)),
            Self::Fresh(AcceptedSocket::Unix(stream)) => or_pending(stream.write_vectored(&parts)),
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, &parts),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, &parts),
            Self::Any(stream) | Self::Fresh(AcceptedSocket::Any(stream)) => {
                stream.poll_write(&parts, cx)
            }
            #[cfg(feature = "tls")]
            Self::Tls(stream) | Self::Fresh(AcceptedSocket::Tls(stream)) => {
                stream.poll_write([first, second, third], cx)
            }
            Self::Gone => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    /// Writes some of what a file follows at once, which may wait for that to fill a segment.
    pub(crate) fn poll_write_ahead(
        &mut self,
        bytes: &[u8],
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        self.poll_write_one(bytes, SendFlags::NOSIGNAL | SendFlags::MORE, cx)
    }

    fn poll_write_one(
        &mut self,
        bytes: &[u8],
        flags: SendFlags,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        // There is room nearly always, and then to try is cheaper than to ask first.
        match self {
            Self::Fresh(AcceptedSocket::Tcp(stream)) => or_pending(send(stream, bytes, flags)),
            Self::Fresh(AcceptedSocket::Unix(stream)) => or_pending(send(stream, bytes, flags)),
            Self::Tcp(stream) => {
                match stream.try_io(Interest::WRITABLE, || send(&*stream, bytes, flags)) {
                    Err(error) if would_block(&error) => Pin::new(stream).poll_write(cx, bytes),
                    tried => Poll::Ready(tried),
                }
            }
            Self::Unix(stream) => {
                match stream.try_io(Interest::WRITABLE, || send(&*stream, bytes, flags)) {
                    Err(error) if would_block(&error) => Pin::new(stream).poll_write(cx, bytes),
                    tried => Poll::Ready(tried),
                }
            }
            Self::Any(stream) | Self::Fresh(AcceptedSocket::Any(stream)) => {
                stream.poll_write(&[IoSlice::new(bytes)], cx)
            }
            #[cfg(feature = "tls")]
            Self::Tls(stream) | Self::Fresh(AcceptedSocket::Tls(stream)) => {
                stream.poll_write([bytes, &[], &[]], cx)
            }
            Self::Gone => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    /// Has a stream that keeps what was written, as TLS does, send it. A socket keeps nothing.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Any(stream) => stream.poll_flush(cx),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.poll_flush(cx),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Ends a stream that has an end of its own, as TLS does (RFC 8446, 6.1), before it is dropped.
    /// Dropping a socket says it all.
    pub(crate) fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Any(_) => self.poll_shutdown(cx),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.poll_close(cx),
            _ => Poll::Ready(()),
        }
    }

    /// Tells a client with TLS that nothing more comes, as far as the system takes that by now.
    #[cfg_attr(
        not(feature = "tls"),
        expect(clippy::unused_self, reason = "without TLS the system tells it")
    )]
    pub(crate) fn end(&mut self) {
        #[cfg(feature = "tls")]
        if let Self::Tls(stream) = self {
            stream.end();
        }
    }

    /// Returns `true` if the stream has ended in both directions, as after a reset: nobody is
    /// there. A TCP socket that was merely closed cannot be told from one whose client only ended
    /// its side.
    pub(crate) fn is_hung_up(&self) -> bool {
        // The system reports `POLLHUP` and `POLLERR` without being asked for them (poll(2)).
        self.has(PollFlags::empty())
    }

    /// Returns `true` if the client has ended its side, or is gone, whether or not what it sent
    /// before was read.
    pub(crate) fn has_ended(&self) -> bool {
        self.has(PollFlags::RDHUP)
    }

    fn has(&self, flags: PollFlags) -> bool {
        match self {
            Self::Fresh(AcceptedSocket::Tcp(stream)) => has(stream, flags),
            Self::Fresh(AcceptedSocket::Unix(stream)) => has(stream, flags),
            Self::Tcp(stream) => has(stream, flags),
            Self::Unix(stream) => has(stream, flags),
            // Only reading tells.
            Self::Any(_) | Self::Fresh(AcceptedSocket::Any(_)) => false,
            #[cfg(feature = "tls")]
            Self::Tls(stream) | Self::Fresh(AcceptedSocket::Tls(stream)) => {
                stream.socket().has(flags)
            }
            Self::Gone => true,
        }
    }

    /// Ends our side of the stream; the client may still send. May be called again, and has to be
    /// while it is pending. The client may be gone already; the connection ends either way.
    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        use rustix::net::{Shutdown, shutdown};
        let _ended = match self {
            Self::Any(stream) | Self::Fresh(AcceptedSocket::Any(stream)) => {
                return stream.poll_shutdown(cx).map(|_ended| ());
            }
            #[cfg(feature = "tls")]
            Self::Tls(stream) | Self::Fresh(AcceptedSocket::Tls(stream)) => {
                return stream.poll_shutdown(cx);
            }
            Self::Fresh(AcceptedSocket::Tcp(stream)) => shutdown(stream, Shutdown::Write),
            Self::Fresh(AcceptedSocket::Unix(stream)) => shutdown(stream, Shutdown::Write),
            Self::Tcp(stream) => shutdown(stream, Shutdown::Write),
            Self::Unix(stream) => shutdown(stream, Shutdown::Write),
            Self::Gone => Ok(()),
        };
        Poll::Ready(())
    }

    /// Has the end of the socket be a reset, which no client takes for the end of a body. What was
    /// sent and is still on its way may be lost. A Unix socket knows no reset.
    pub(crate) fn reset_at_end(&self) {
        let linger = Some(Duration::ZERO);
        // A socket that is broken needs none.
        let _set = match self {
            Self::Fresh(AcceptedSocket::Tcp(stream)) => set_socket_linger(stream, linger),
            Self::Tcp(stream) => set_socket_linger(stream, linger),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => {
                stream.socket().reset_at_end();
                Ok(())
            }
            // A Unix socket knows no reset; a stream with an end of its own says the same by
            // lacking it.
            _ => Ok(()),
        };
    }
}

fn has(socket: impl AsFd, flags: PollFlags) -> bool {
    let mut asked = [PollFd::new(&socket, flags)];
    poll(&mut asked, Some(&Timespec::default())).is_ok_and(|told| told > 0)
}

fn would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

fn or_pending<T>(done: io::Result<T>) -> Poll<io::Result<T>> {
    match done {
        Err(error) if would_block(&error) => Poll::Pending,
        // No signal handler of ours interrupts a system call for long: try when polled again.
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Poll::Pending,
        done => Poll::Ready(done),
    }
}

// The standard library's calls are points of cancellation of the C library, which these are not;
// that is a tenth of what a small request costs outside the kernel.
fn recv(socket: impl AsFd, room: &mut [u8]) -> io::Result<usize> {
    let (_, length) = rustix::net::recv(socket, room, RecvFlags::empty())?;
    Ok(length)
}

fn send(socket: impl AsFd, bytes: &[u8], flags: SendFlags) -> io::Result<usize> {
    Ok(rustix::net::send(socket, bytes, flags)?)
}

fn send_file(socket: impl AsFd, file: &File, mut offset: u64, length: u64) -> io::Result<u64> {
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    Ok(sendfile(socket, file, Some(&mut offset), length)? as u64)
}

/// Reads once from a socket that is ready, within `try_io` of its runtime. If the room was not
/// filled, the socket is exhausted (epoll(7), question 9), and the runtime is told that it would
/// block: it then need not find out by another call.
fn exhaust(
    socket: impl AsFd,
    room: &mut [u8],
    try_io: impl FnOnce(&mut dyn FnMut() -> io::Result<usize>) -> io::Result<usize>,
) -> io::Result<usize> {
    let mut last = 0;
    let mut read = || {
        let length = recv(&socket, room)?;
        if (1..room.len()).contains(&length) {
            last = length;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(length)
    };
    match try_io(&mut read) {
        Err(_) if last > 0 => Ok(last),
        tried => tried,
    }
}

/// Reads or writes, once the socket is ready. It mostly is when it is polled, so the runtime is
/// asked only where it is not. Nothing is counted against the budget of the task: its callers take
/// turns of their own, or count it.
fn poll_io<T>(
    ready: impl Fn(&mut Context<'_>) -> Poll<io::Result<()>>,
    mut once: impl FnMut() -> io::Result<T>,
    cx: &mut Context<'_>,
) -> Poll<io::Result<T>> {
    loop {
        match once() {
            Err(error) if would_block(&error) => ready!(ready(cx))?,
            done => return Poll::Ready(done),
        }
    }
}
