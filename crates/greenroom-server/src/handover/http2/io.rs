use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::input::Input;
use super::seen::Seen;
use super::turns::Turns;
use crate::event_loop::Clock;
use crate::handover::io::Rewound;

/// The socket of an HTTP/2 connection, of which is noted what goes through it. It outlives hyper's
/// connection, which drops what it was given.
#[derive(Debug)]
pub(super) struct Noted {
    io: Rewound,
    turns: Turns,
    clock: Clock,
    seen: Rc<Seen>,
    input: Rc<Input>,
    left: Rc<Left>,
}

/// The place for the socket that hyper has dropped.
pub(super) type Left = RefCell<Option<Rewound>>;

impl Noted {
    pub(super) fn new(
        io: Rewound,
        turns: Turns,
        clock: Clock,
        (seen, input, left): (Rc<Seen>, Rc<Input>, Rc<Left>),
    ) -> Self {
        Self {
            io,
            turns,
            clock,
            seen,
            input,
            left,
        }
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        let io = mem::replace(&mut self.io, Rewound::gone());
        self.left.replace(Some(io));
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
        let is_turn = self.turns.is_turn(cx);
        self.seen.waits_for_turn.set(!is_turn);
        if !is_turn {
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(cx, buffer))?;
        let read = &buffer.filled()[before..];
        self.turns.spend(read.len());
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
        if !self.turns.is_turn(cx) {
            return Poll::Pending;
        }
        let sent = ready!(Pin::new(&mut self.io).poll_write(cx, bytes))?;
        self.turns.spend(sent);
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
        if !self.turns.is_turn(cx) {
            return Poll::Pending;
        }
        let sent = ready!(Pin::new(&mut self.io).poll_write_vectored(cx, parts))?;
        self.turns.spend(sent);
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
