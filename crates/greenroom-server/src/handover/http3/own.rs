//! The server's own streams of a connection: of control, and of QPACK.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use h3::quic::{self, StreamErrorIncoming, StreamId, WriteBuf};

use super::transport::{id, not_written, number};
use crate::handover::body::Part;

/// The own streams of a connection, which sends on them what clients did not take at once.
pub(super) type OwnStreams = Rc<RefCell<Vec<Rc<RefCell<Unsent>>>>>;

/// A stream of the server's own. Whatever h3 writes to it counts as written: that is its settings
/// and at most three GOAWAYs, and a client that lets it send none of them must hold up no others.
pub(super) struct OwnStream(Rc<RefCell<Unsent>>);

/// An own stream, and what its client has not taken yet.
pub(super) struct Unsent {
    quic: quinn::SendStream,
    frames: VecDeque<WriteBuf<Part>>,
}

/// Sends on all of them what their client takes by now.
pub(super) fn send(own: &OwnStreams, cx: &mut Context<'_>) {
    own.borrow_mut().retain(|stream| {
        let mut stream = stream.borrow_mut();
        match stream.poll_send(cx) {
            Poll::Pending | Poll::Ready(Ok(())) => true,
            // Its client has stopped it, which h3 learns when it writes again.
            Poll::Ready(Err(_)) => false,
        }
    });
}

impl OwnStream {
    /// One of `own` that was opened.
    pub(super) fn new(quic: quinn::SendStream, own: &OwnStreams) -> Self {
        let unsent = Rc::new(RefCell::new(Unsent {
            quic,
            frames: VecDeque::new(),
        }));
        own.borrow_mut().push(Rc::clone(&unsent));
        Self(unsent)
    }
}

impl Unsent {
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        while let Some(frame) = self.frames.front_mut() {
            if frame.has_remaining() {
                let written = Pin::new(&mut self.quic).poll_write(cx, frame.chunk());
                frame.advance(ready!(written).map_err(not_written)?);
            } else {
                self.frames.pop_front();
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl quic::SendStream<Part> for OwnStream {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        match self.0.borrow_mut().poll_send(cx) {
            Poll::Pending => Poll::Ready(Ok(())),
            sent @ Poll::Ready(_) => sent,
        }
    }

    fn send_data<T: Into<WriteBuf<Part>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.0.borrow_mut().frames.push_back(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        let finished = self.0.borrow_mut().quic.finish();
        Poll::Ready(finished.map_err(|error| StreamErrorIncoming::Unknown(error.into())))
    }

    fn reset(&mut self, code: u64) {
        // An error means that it has ended.
        let _reset = self.0.borrow_mut().quic.reset(number(code));
    }

    fn send_id(&self) -> StreamId {
        id(self.0.borrow().quic.id())
    }
}
