use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::Socket;

/// A registered socket whose first bytes were read before it was handed over, and whose last
/// answers were not sent.
#[derive(Debug)]
pub(super) struct Rewound {
    socket: Socket,
    unsent: Bytes,
    input: Bytes,
}

impl Rewound {
    pub(super) fn new(socket: Socket, unsent: Vec<u8>, input: Bytes) -> Self {
        Self {
            socket,
            unsent: unsent.into(),
            input,
        }
    }

    fn poll_unsent(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.unsent.is_empty() {
            let sent = ready!(self.socket.poll_write(&self.unsent, &[], cx))?;
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
        self.socket.poll_write(bytes, &[], cx)
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
        self.socket.poll_write(first, second, cx)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_unsent(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_unsent(cx))?;
        self.socket.shutdown_write();
        Poll::Ready(Ok(()))
    }
}
