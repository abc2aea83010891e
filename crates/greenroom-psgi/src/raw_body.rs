//! The body of a response that an application writes on its own socket.

use std::io;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;

use crate::link::Call;
use crate::pool::Stay;

/// The bytes that are read at once.
const READ_BYTES: usize = 16_384;

/// The bytes that an application writes behind a head of its own.
#[derive(Debug)]
pub(crate) struct RawBody {
    io: UnixStream,
    input: Bytes,
    left: u64,
    _held: (Call, Stay),
}

impl RawBody {
    /// Creates one of these bytes, and those that come on `io`; `left` are all of them.
    pub(crate) fn new(io: UnixStream, input: Bytes, left: u64, held: (Call, Stay)) -> Self {
        Self {
            io,
            input,
            left,
            _held: held,
        }
    }

    pub(crate) fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        if self.input.is_empty() {
            let mut buffer = BytesMut::with_capacity(READ_BYTES);
            match ready!(pin!(self.io.read_buf(&mut buffer)).poll(cx)) {
                Ok(0) => return Poll::Ready(None),
                Ok(_) => self.input = buffer.freeze(),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let chunk = self.input.split_to(self.input.len().min(most));
        self.left -= chunk.len() as u64;
        Poll::Ready(Some(Ok(chunk)))
    }
}
