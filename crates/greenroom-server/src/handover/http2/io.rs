use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::frames::Frames;
use crate::event_loop::Clock;
use crate::handover::io::Rewound;

/// The socket of an HTTP/2 connection, of which is noted what goes through it.
#[derive(Debug)]
pub(super) struct Noted {
    io: Rewound,
    clock: Clock,
    seen: Rc<Seen>,
}

/// What went through the socket.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) frames: RefCell<Frames>,
    /// The system has taken all that may be sent: what is left waits for the client to open its window.
    pub(super) is_flushed: Cell<bool>,
}

impl Noted {
    pub(super) fn new(io: Rewound, clock: Clock) -> Self {
        let seen = Seen {
            frames: RefCell::default(),
            is_flushed: Cell::new(true),
        };
        Self {
            io,
            clock,
            seen: Rc::new(seen),
        }
    }

    pub(super) fn seen(&self) -> Rc<Seen> {
        Rc::clone(&self.seen)
    }
}

impl AsyncRead for Noted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(cx, buffer))?;
        let read = &buffer.filled()[before..];
        self.seen.frames.borrow_mut().note(read, self.clock.now());
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
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.seen.is_flushed.set(false);
        Pin::new(&mut self.io).poll_write_vectored(cx, parts)
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
