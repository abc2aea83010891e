use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::connection::Socket;

/// A registered socket whose first bytes were read before it was handed over, and whose last
/// answers were not sent. A client that takes nothing of what is sent for too long is an error.
#[derive(Debug)]
pub(super) struct Rewound {
    socket: Socket,
    unsent: Bytes,
    input: Bytes,
    write_timeout: Duration,
    /// There while the client does not read.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Rewound {
    pub(super) fn new(
        socket: Socket,
        unsent: Vec<u8>,
        input: Bytes,
        write_timeout: Duration,
    ) -> Self {
        Self {
            socket,
            unsent: unsent.into(),
            input,
            write_timeout,
            stalled: None,
        }
    }

    fn poll_send(
        &mut self,
        first: &[u8],
        second: &[u8],
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(sent) = self.socket.poll_write(first, second, &[], cx) {
            self.stalled = None;
            return Poll::Ready(sent);
        }
        let time = self.write_timeout;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(time)));
        ready!(stalled.as_mut().poll(cx));
        // Else the system would keep what is unsent for minutes, for a client that takes none of it.
        self.socket.reset_at_end();
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    fn poll_unsent(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.unsent.is_empty() {
            let unsent = self.unsent.clone();
            let sent = ready!(self.poll_send(&unsent, &[], cx))?;
            self.unsent.advance(sent);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Rewound {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.input.is_empty() {
            let length = self.input.len().min(buffer.remaining());
            buffer.put_slice(&self.input.split_to(length));
            return Poll::Ready(Ok(()));
        }
        let room = buffer.initialize_unfilled();
        let length = ready!(self.socket.poll_read(room, cx))?;
        buffer.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Rewound {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_unsent(cx))?;
        self.poll_send(bytes, &[], cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_unsent(cx))?;
        let mut filled = parts.iter().filter(|part| !part.is_empty());
        let first = filled.next().map_or(&[][..], |part| part);
        let second = filled.next().map_or(&[][..], |part| part);
        self.poll_send(first, second, cx)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_unsent(cx))?;
        self.socket.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_unsent(cx))?;
        self.socket.poll_shutdown(cx).map(Ok)
    }
}
