use std::io;
use std::task::{Context, Poll, ready};

use super::buffers::{Buffers, INPUT_BYTES_MAX, with_buffers};
use super::error::Broken;
use super::hello::Hello;
use super::session::{PLAIN_BYTES_MAX, Session, Step};
use super::{Tls, TlsInfo};
use crate::connection::Socket;

/// Most bytes of a handshake that has not come to its end: a client's certificates are the longest
/// part of it.
const HANDSHAKE_BYTES_MAX: usize = 32 * 1_024;
/// Content that was read and does not fit is kept; nothing is read before it is taken.
const ROOM_BYTES_MIN: usize = 1;

/// A client's socket with TLS on it.
///
/// It reads and writes through the buffers of the thread that polls it. Its own are input that is
/// no whole record yet, content for which its reader had no room, and output that the socket did
/// not take: all of them empty, and without memory, while it is idle.
pub(crate) struct TlsStream {
    socket: Socket,
    session: Session,
    /// Ciphertext that was read and not worked off.
    input: Vec<u8>,
    /// Content that was read and not taken, and how much of it was taken since.
    content: Vec<u8>,
    content_taken: usize,
    /// Ciphertext that was not sent, and how much of it was sent since.
    unsent: Vec<u8>,
    unsent_taken: usize,
    /// The client has ended its side, or the socket has.
    has_ended: bool,
    /// We have ended ours.
    is_ended: bool,
}

/// How to read from the socket: [`Socket::poll_read`] or [`Socket::look`].
type Read = fn(&mut Socket, &mut [u8], &mut Context<'_>) -> Poll<io::Result<usize>>;

impl TlsStream {
    /// Begins a handshake; `input` was read of the socket already.
    pub(crate) fn new(tls: &Tls, socket: Socket, input: Vec<u8>) -> io::Result<Self> {
        Ok(Self {
            socket,
            session: Session::new(tls.config())?,
            input,
            content: Vec::new(),
            content_taken: 0,
            unsent: Vec::new(),
            unsent_taken: 0,
            has_ended: false,
            is_ended: false,
        })
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    pub(crate) fn socket_mut(&mut self) -> &mut Socket {
        &mut self.socket
    }

    /// Bytes that it holds while it waits.
    pub(crate) fn held(&self) -> usize {
        self.input.len() + self.content.len() + self.unsent.len()
    }

    /// Bytes that were written and that the socket has not taken.
    pub(crate) fn behind(&self) -> usize {
        self.unsent.len() - self.unsent_taken
    }

    pub(crate) fn info(&mut self) -> TlsInfo {
        self.session.info()
    }

    /// Reads until there is a first message, or what is none.
    pub(crate) fn poll_hello(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Hello>> {
        loop {
            match Hello::of(&self.input) {
                Hello::Partial => ready!(self.poll_more_of_handshake(cx))?,
                come => return Poll::Ready(Ok(come)),
            }
        }
    }

    /// Reads more of the client's part of a handshake.
    pub(crate) fn poll_more_of_handshake(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.input.len() >= HANDSHAKE_BYTES_MAX {
            let fault = format!("a handshake of more than {HANDSHAKE_BYTES_MAX} bytes");
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, fault)));
        }
        let room_max = HANDSHAKE_BYTES_MAX - self.input.len();
        let (socket, input) = (&mut self.socket, &mut self.input);
        let length = ready!(with_buffers(|buffers| {
            let read = ready!(socket.poll_read(&mut buffers.input[..room_max], cx))?;
            input.extend_from_slice(&buffers.input[..read]);
            Poll::Ready(io::Result::Ok(read))
        }))?;
        if length == 0 {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        Poll::Ready(Ok(()))
    }

    /// Goes on with the handshake by what was read: `true` if it is over. What is to be sent is
    /// sent by [`poll_flush`](Self::poll_flush).
    pub(crate) fn shake(&mut self) -> io::Result<bool> {
        let mut input = std::mem::take(&mut self.input);
        let worked = self.work_off(&mut input, 0);
        self.input = input;
        worked?;
        Ok(!self.session.is_handshaking())
    }

    /// Reads content into `room`: how many bytes, 0 at the end of the stream.
    pub(crate) fn poll_read(
        &mut self,
        room: &mut [u8],
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        self.poll_read_by(Socket::poll_read, room, cx)
    }

    /// Reads what has come by now, whether or not the runtime knows of it yet.
    pub(crate) fn look(
        &mut self,
        room: &mut [u8],
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        self.poll_read_by(Socket::look, room, cx)
    }
}
