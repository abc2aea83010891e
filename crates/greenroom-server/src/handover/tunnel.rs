use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::{Sleep, sleep};

use super::io::Rewound;
use super::spelling::Spelling;
use super::websocket::{Written, close_frame};
use crate::drain::Phase;
use crate::request_handle::Line;

/// A connection that may become a WebSocket. When the server drains, it sends a close frame
/// between two frames of the application's; the client's reply to that ends the application's
/// side, which need not know of drains. An application that asked for the notice of the drain does
/// all that itself.
///
/// It goes wherever the application takes it, and carries the connection's permit `G` along.
pub(super) struct Tunnel<G> {
    io: Rewound,
    written: Written,
    leaving: Leaving,
    told: watch::Receiver<Phase>,
    line: Arc<Line>,
    spelling: Spelling,
    /// A writer that waits for room, in a task of its own perhaps: the close frame waits in the
    /// same place of the socket.
    writer: Option<Waker>,
    _guard: G,
}

enum Leaving {
    /// Until the server drains.
    No(Pin<Box<dyn Future<Output = ()> + Send>>),
    /// That is the application's to do.
    ByApplication,
    /// The next gap between two frames is for the close frame.
    Due,
    /// The rest of the close frame.
    Sending(&'static [u8]),
    /// Drops what the application writes. The client has until then to reply (RFC 6455, 7.1.1); if
    /// it does not, the application reads the end of the stream.
    Done(Pin<Box<Sleep>>),
}

/// Time that a client may take to reply to the close frame.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

impl<G> Tunnel<G> {
    pub(super) fn new(
        io: Rewound,
        told: watch::Receiver<Phase>,
        line: Arc<Line>,
        spelling: Spelling,
        guard: G,
    ) -> Self {
        let mut awaited = told.clone();
        let drained = async move {
            // An error means that the server is gone, which is a reason to leave as well.
            let _phase = awaited.wait_for(|phase| *phase != Phase::Serving).await;
        };
        Self {
            io,
            written: Written::Head(Vec::new()),
            leaving: Leaving::No(Box::pin(drained)),
            told,
            line,
            spelling,
            writer: None,
            _guard: guard,
        }
    }

    /// Handles a drain on behalf of the writer. Only the reader waits for one: a writer that did
    /// would take the reader's place as the one to be woken.
    fn poll_leave_writing(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if matches!(self.leaving, Leaving::No(_)) {
            if *self.told.borrow() == Phase::Serving {
                return Poll::Ready(Ok(()));
            }
            self.leaving = self.begin_to_leave();
        }
        self.poll_leave(cx)
    }

    fn begin_to_leave(&self) -> Leaving {
        if self.line.is_notified() {
            Leaving::ByApplication
        } else {
            Leaving::Due
        }
    }

    /// Sends the close frame if it is time for it. Pending while it is under way.
    fn poll_leave(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            match &mut self.leaving {
                Leaving::No(drained) => match drained.as_mut().poll(cx) {
                    Poll::Ready(()) => self.leaving = self.begin_to_leave(),
                    Poll::Pending => return Poll::Ready(Ok(())),
                },
                Leaving::Due if self.written.is_between_frames() => {
                    self.leaving = Leaving::Sending(close_frame(*self.told.borrow()));
                }
                Leaving::Sending(left) if !left.is_empty() => {
                    let io = Pin::new(&mut self.io);
                    let sent = ready!(io.poll_write(cx, left))?;
                    *left = &left[sent..];
                }
                Leaving::Sending(_) => {
                    self.leaving = Leaving::Done(Box::pin(sleep(RESPONSE_TIMEOUT)));
                    if let Some(writer) = self.writer.take() {
                        writer.wake();
                    }
                }
                Leaving::ByApplication | Leaving::Due | Leaving::Done(_) => {
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl<G: Unpin> AsyncRead for Tunnel<G> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // While the close frame waits for room, reading goes on: both sides may be writing.
        if let Poll::Ready(Err(error)) = this.poll_leave(cx) {
            return Poll::Ready(Err(error));
        }
        if let Leaving::Done(reply_due) = &mut this.leaving
            && reply_due.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut this.io).poll_read(cx, buffer)
    }
}

impl<G: Unpin> AsyncWrite for Tunnel<G> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_leave_writing(cx))?;
        if matches!(this.leaving, Leaving::Done(_)) {
            return Poll::Ready(Ok(bytes.len()));
        }
        let bytes = this.spelling.spelled(bytes);
        let written = Pin::new(&mut this.io).poll_write(cx, bytes);
        if written.is_pending() {
            this.writer = Some(cx.waker().clone());
        }
        let sent = ready!(written)?;
        this.written.note(&bytes[..sent]);
        this.spelling.note(sent);
        Poll::Ready(Ok(sent))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_leave_writing(cx))?;
        Pin::new(&mut this.io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}

impl<G> fmt::Debug for Tunnel<G> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Tunnel")
            .field("io", &self.io)
            .field("written", &self.written)
            .finish_non_exhaustive()
    }
}
