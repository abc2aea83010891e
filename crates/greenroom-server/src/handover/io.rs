use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::coop::poll_proceed;
use tokio::time::{Instant, Sleep, sleep};

use crate::connection::{Socket, Taking};
use crate::event_loop::TICK;

/// A registered socket whose first bytes were read before it was handed over, and whose last
/// responses were not sent. A client that takes too little of what is sent for too long is an
/// error.
///
/// Each read and write counts against the budget of its task, as those of the runtime's own sockets
/// do: one that is never found empty, or never full, would hold up its loop for ever.
#[derive(Debug)]
pub(super) struct Rewound {
    socket: Socket,
    unsent: Bytes,
    input: Bytes,
    pace: Pace,
    /// Bytes that were given to the socket, and those that the system took of them.
    given: u64,
    sent: u64,
    taking: Taking,
    /// There while the client does not read.
    waiting: Option<Waiting>,
}

/// The pace at which a client has to take what is sent to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Time by which it may be behind.
    pub(super) write_timeout: Duration,
    /// Bytes a second; with 0 any byte makes up for all time.
    pub(super) rate_min: u64,
}

#[derive(Debug)]
struct Waiting {
    since: Instant,
    look: Pin<Box<Sleep>>,
}

impl Rewound {
    pub(super) fn new(socket: Socket, unsent: Vec<u8>, input: Bytes, pace: Pace) -> Self {
        Self {
            socket,
            unsent: unsent.into(),
            input,
            pace,
            given: 0,
            sent: 0,
            taking: Taking::default(),
            waiting: None,
        }
    }

    /// Lets the client take any time, as long as it takes a byte each `write_timeout`.
    pub(super) fn lift_rate(&mut self) {
        self.pace.rate_min = 0;
    }

    /// Returns `true` if the client has ended its side, or is gone, whether or not what it sent
    /// before was read.
    pub(super) fn has_ended(&self) -> bool {
        self.socket.has_ended()
    }

    /// Stands in for one that was moved elsewhere.
    pub(super) fn gone() -> Self {
        let pace = Pace {
            write_timeout: Duration::MAX,
            rate_min: 0,
        };
        Self::new(Socket::Gone, Vec::new(), Bytes::new(), pace)
    }

    fn poll_send(
        &mut self,
        first: &[u8],
        second: &[u8],
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let budget = ready!(poll_proceed(cx));
        loop {
            if let Poll::Ready(sent) = self.socket.poll_write(first, second, &[], cx) {
                budget.made_progress();
                let sent = sent?;
                self.note_sent(sent);
                return Poll::Ready(Ok(sent));
            }
            ready!(self.poll_look(cx));
            if let Some(sent) = self.look(first, second)? {
                budget.made_progress();
                return Poll::Ready(Ok(sent));
            }
        }
    }

    /// Waits until it is time to look whether the client has taken something.
    fn poll_look(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.waiting.is_none() {
            self.settle(Duration::ZERO);
            self.waiting = Some(Waiting {
                since: Instant::now(),
                look: Box::pin(sleep(TICK.min(self.left()))),
            });
        }
        let waiting = self.waiting.as_mut().expect("it was made above");
        waiting.look.as_mut().poll(cx)
    }

    /// Sends what the system takes by now: it says so late, only when there is room for much more
    /// than a byte. Then sees whether the client is to be given up, or when to look again.
    fn look(&mut self, first: &[u8], second: &[u8]) -> io::Result<Option<usize>> {
        let bytes = if first.is_empty() { second } else { first };
        let behind = self.socket.behind();
        match self.socket.try_write(bytes) {
            // The system took some of what a stream with TLS had kept, and no more.
            Ok(0) if self.socket.behind() < behind => {
                self.note_sent(0);
                return Ok(None);
            }
            Ok(sent) => {
                self.note_sent(sent);
                return Ok(Some(sent));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        let left = self.left();
        let Some(waiting) = &mut self.waiting else {
            return Ok(None);
        };
        let waited = waiting.since.elapsed();
        if waited >= left {
            // Else the system would keep what is unsent for minutes, for a client that takes none
            // of it.
            self.socket.reset_at_end();
            return Err(io::ErrorKind::TimedOut.into());
        }
        let next = waited.min(left.saturating_sub(waited));
        waiting.look.as_mut().reset(Instant::now() + next);
        Ok(None)
    }

    fn note_sent(&mut self, bytes: usize) {
        self.given += bytes as u64;
        let sent = self.given.saturating_sub(self.socket.behind() as u64);
        self.sent = self.sent.max(sent);
        if let Some(waiting) = self.waiting.take() {
            self.settle(waiting.since.elapsed());
        }
    }

    fn settle(&mut self, waited: Duration) {
        self.taking.settle(waited, self.sent, self.pace.rate_min);
    }

    /// Returns the time for which the client may take nothing, from when it began to be waited for.
    fn left(&self) -> Duration {
        self.taking.left(self.pace.write_timeout)
    }

    /// Has a stream with TLS send what it keeps, at the same pace as all else.
    fn poll_kept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if let Poll::Ready(flushed) = self.socket.poll_flush(cx) {
                self.note_sent(0);
                return Poll::Ready(flushed);
            }
            if self.socket.behind() == 0 {
                // A stream of the application's own, whose pace is its own.
                return Poll::Pending;
            }
            ready!(self.poll_look(cx));
            self.look(&[], &[])?;
        }
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
        let budget = ready!(poll_proceed(cx));
        let room = buffer.initialize_unfilled();
        let length = ready!(self.socket.poll_read(room, cx))?;
        budget.made_progress();
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
        self.poll_kept(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_unsent(cx))?;
        self.socket.poll_shutdown(cx).map(Ok)
    }
}
