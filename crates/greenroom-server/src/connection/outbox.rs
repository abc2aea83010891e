use std::io;
use std::task::{Context, Poll, ready};

use bytes::Bytes;

use super::socket::Socket;

/// What a client did not take yet: bytes that were copied, then a part of a body that was not.
/// Empty, and without memory of its own, unless the client reads too slowly.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    sent: usize,
    part: Bytes,
    /// Something is left, here or in a stream that keeps what was written to it.
    is_left: bool,
}

impl Outbox {
    pub(super) fn is_empty(&self) -> bool {
        !self.is_left
    }

    /// Sends `bytes` and then `part`, and keeps what the client does not take at once. Pending
    /// means that something was kept. The outbox must be empty, and `bytes` is afterwards.
    pub(super) fn poll_send(
        &mut self,
        bytes: &mut Vec<u8>,
        part: Bytes,
        socket: &mut Socket,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        debug_assert!(self.is_empty(), "what is kept goes first");
        self.part = part;
        let mut sent = 0;
        let done = poll_send_all(bytes, &mut sent, &mut self.part, socket, cx);
        if done.is_pending() {
            self.bytes = bytes.split_off(sent);
            self.sent = 0;
            self.is_left = true;
        }
        bytes.clear();
        done
    }

    /// Sends what was kept.
    pub(super) fn poll_flush(
        &mut self,
        socket: &mut Socket,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(poll_send_all(
            &self.bytes,
            &mut self.sent,
            &mut self.part,
            socket,
            cx
        ))?;
        self.bytes = Vec::new();
        self.sent = 0;
        self.is_left = false;
        Poll::Ready(Ok(()))
    }

    /// Bytes still to be sent: when this falls, the client reads.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.sent + self.part.len()
    }
}

fn poll_send_all(
    bytes: &[u8],
    sent: &mut usize,
    part: &mut Bytes,
    socket: &mut Socket,
    cx: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    while *sent < bytes.len() || !part.is_empty() {
        let left = &bytes[*sent..];
        let taken = if left.is_empty() {
            ready!(socket.poll_write(part, &[], cx))?
        } else {
            ready!(socket.poll_write(left, part, cx))?
        };
        if taken == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        let of_bytes = taken.min(left.len());
        *sent += of_bytes;
        let _sent = part.split_to(taken - of_bytes);
    }
    socket.poll_flush(cx)
}
