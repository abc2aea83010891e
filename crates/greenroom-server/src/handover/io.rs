use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use crate::connection::Socket;

/// A registered socket whose first bytes were read before it was handed over, and whose last
/// answers were not sent. A client that takes nothing of what is sent for too long is an error.
#[derive(Debug)]
pub(super) struct Rewound {
    socket: Socket,
    unsent: Bytes,
    input: Bytes,
    write_timeout: Duration,
    /// There while the system takes nothing more for the client.
    stalled: Option<Stalled>,
}

/// The wait for a client that takes nothing. The system says late that there is room, on a socket of 128 KiB
/// when half of it is empty, so it is asked now and then: a client that takes little takes something.
#[derive(Debug)]
struct Stalled {
    since: Instant,
    /// When to ask next: after as long again as was waited.
    ask: Pin<Box<Sleep>>,
}

/// When the system is first asked.
const ASK_FIRST: Duration = Duration::from_millis(250);

impl Stalled {
    fn new(time: Duration) -> Self {
        Self {
            since: Instant::now(),
            ask: Box::pin(sleep(time.min(ASK_FIRST))),
        }
    }

    /// Waits on: false if that was `time` already.
    fn go_on(&mut self, time: Duration) -> bool {
        let waited = self.since.elapsed();
        let next = (2 * waited).min(time);
        self.ask.as_mut().reset(self.since + next);
        waited < time
    }
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
        let stalled = self.stalled.get_or_insert_with(|| Stalled::new(time));
        loop {
            ready!(stalled.ask.as_mut().poll(cx));
            let part = if first.is_empty() { second } else { first };
            match self.socket.try_write(part) {
                Err(error) if is_passing(&error) => {}
                tried => {
                    self.stalled = None;
                    return Poll::Ready(tried);
                }
            }
            if !stalled.go_on(time) {
                break;
            }
        }
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

fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
    )
}
