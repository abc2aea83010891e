use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::frames::Frames;
use super::input::Input;
use crate::event_loop::Clock;
use crate::handover::io::Rewound;

/// The socket of an HTTP/2 connection, of which is noted what goes through it.
#[derive(Debug)]
pub(super) struct Noted {
    io: Rewound,
    clock: Clock,
    seen: Rc<Seen>,
    input: Rc<Input>,
}

/// Both directions of the socket, as far as they went.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) from_client: RefCell<Frames>,
    pub(super) to_client: RefCell<Frames>,
    /// The system has taken all that may be sent: what is left waits for the client to open its
    /// window.
    pub(super) is_flushed: Cell<bool>,
}

impl Seen {
    pub(super) fn new() -> Rc<Self> {
        Rc::new(Self {
            from_client: RefCell::new(Frames::of_client()),
            to_client: RefCell::new(Frames::of_server()),
            is_flushed: Cell::new(true),
        })
    }

    /// Bytes of responses that the client lets the server send, over all streams.
    pub(super) fn window(&self) -> u64 {
        let opened = self.from_client.borrow().window();
        opened.saturating_sub(self.to_client.borrow().data_bytes())
    }

    fn note_sent(&self, parts: &[IoSlice<'_>], mut sent: usize, clock: &Clock) {
        let mut frames = self.to_client.borrow_mut();
        for part in parts {
            let length = part.len().min(sent);
            frames.note(&part[..length], clock.now());
            sent -= length;
        }
    }
}

impl Noted {
    pub(super) fn new(io: Rewound, clock: Clock, seen: Rc<Seen>, input: Rc<Input>) -> Self {
        Self {
            io,
            clock,
            seen,
            input,
        }
    }
}

impl AsyncRead for Noted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.input.may_read() {
            // The connection looks again with the next tick.
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(cx, buffer))?;
        let read = &buffer.filled()[before..];
        let mut frames = self.seen.from_client.borrow_mut();
        frames.note(read, self.clock.now());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Noted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.seen.is_flushed.set(false);
        let sent = ready!(Pin::new(&mut self.io).poll_write(cx, bytes))?;
        self.seen
            .note_sent(&[IoSlice::new(bytes)], sent, &self.clock);
        Poll::Ready(Ok(sent))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.seen.is_flushed.set(false);
        let sent = ready!(Pin::new(&mut self.io).poll_write_vectored(cx, parts))?;
        self.seen.note_sent(parts, sent, &self.clock);
        Poll::Ready(Ok(sent))
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.io).poll_flush(cx))?;
        self.seen.is_flushed.set(true);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
