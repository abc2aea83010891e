use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::task::coop::poll_proceed;
use tokio::time::{Instant, Sleep, sleep};

use super::io::Rewound;
use super::spelling::Spelling;
use super::websocket::{Written, close_frame};
use crate::drain::Phase;
use crate::memory::Held;
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
    opened: Opened,
    /// The output that hyper holds, since the client does not take it. There until the connection
    /// is a tunnel.
    held: Option<Held>,
    /// The reader that waits, and the writer, in a task of its own perhaps. Whichever was polled
    /// last has the socket wake it for the close frame, in the writer's place, and wakes the other.
    reader: Option<Waker>,
    writer: Option<Waker>,
    _guard: G,
}

/// Set when the connection is a tunnel: hyper has given it to the application.
pub(super) type Opened = Arc<AtomicBool>;

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
    /// it does not, the application reads the end of the stream, and cannot write any more.
    Done {
        reply_due: Pin<Box<Sleep>>,
        /// The application reads, and sees for itself when the client has replied or left.
        is_read: bool,
    },
}

/// Time that a client may take to reply to the close frame.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

impl<G> Tunnel<G> {
    pub(super) fn new(
        io: Rewound,
        told: watch::Receiver<Phase>,
        line: Arc<Line>,
        spelling: Spelling,
        (opened, held): (Opened, Held),
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
            opened,
            held: Some(held),
            reader: None,
            writer: None,
            _guard: guard,
        }
    }

    /// Handles a drain on behalf of the writer. Only the reader waits for one, and for the reply: a
    /// writer that did would take the reader's place as the one to be woken.
    fn poll_leave_writing(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if matches!(self.leaving, Leaving::No(_)) {
            if *self.told.borrow() == Phase::Serving {
                return Poll::Ready(Ok(()));
            }
            self.leaving = self.begin_to_leave();
        }
        ready!(self.poll_leave(cx))?;
        let Leaving::Done { reply_due, is_read } = &self.leaving else {
            return Poll::Ready(Ok(()));
        };
        // What is dropped never has to wait: a writer that goes on would hold up its loop for ever.
        ready!(poll_proceed(cx)).made_progress();
        let is_due = Instant::now() >= reply_due.deadline();
        // One that only writes learns of the client's end from nobody else.
        if is_due || (!is_read && self.io.has_ended()) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        Poll::Ready(Ok(()))
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
                    match ready!(io.poll_write(cx, left)) {
                        Ok(sent) => *left = &left[sent..],
                        Err(error) => {
                            self.wake_both();
                            return Poll::Ready(Err(error));
                        }
                    }
                }
                Leaving::Sending(_) => {
                    self.leaving = Leaving::Done {
                        reply_due: Box::pin(sleep(RESPONSE_TIMEOUT)),
                        is_read: false,
                    };
                    self.wake_both();
                }
                Leaving::ByApplication | Leaving::Due | Leaving::Done { .. } => {
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }

    fn wake_both(&mut self) {
        let waiting = [self.reader.take(), self.writer.take()];
        waiting.into_iter().flatten().for_each(Waker::wake);
    }

    fn poll_input(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // While the close frame waits for room, reading goes on: both sides may be writing.
        if let Poll::Ready(Err(error)) = self.poll_leave(cx) {
            return Poll::Ready(Err(error));
        }
        if let Leaving::Done { reply_due, is_read } = &mut self.leaving {
            *is_read = true;
            if reply_due.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
        }
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }

    fn poll_output(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_leave_writing(cx))?;
        if matches!(self.leaving, Leaving::Done { .. }) {
            return Poll::Ready(Ok(bytes.len()));
        }
        self.look_whether_opened();
        let spelled = self.spelling.spelled(bytes);
        let written = Pin::new(&mut self.io).poll_write(cx, spelled);
        let sent = match &written {
            Poll::Ready(Ok(sent)) => *sent,
            _ => 0,
        };
        if let Some(held) = &self.held {
            // hyper offers all that it holds.
            held.note(bytes.len() - sent);
        }
        ready!(written)?;
        self.written.note(&spelled[..sent]);
        self.spelling.note(sent);
        Poll::Ready(Ok(sent))
    }

    fn poll_flushed(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_leave_writing(cx))?;
        self.look_whether_opened();
        Pin::new(&mut self.io).poll_flush(cx)
    }

    /// Lifts the limits of a response once the connection is a tunnel: its pace is for its two ends
    /// to agree on, and the application holds what it writes.
    fn look_whether_opened(&mut self) {
        // Relaxed suffices: the limits may hold for some bytes more.
        if self.held.is_some() && self.opened.load(Ordering::Relaxed) {
            self.held = None;
            self.io.lift_rate();
        }
    }
}

/// Keeps the waker of whoever has to wait.
fn keep_if_pending<T>(polled: &Poll<T>, place: &mut Option<Waker>, cx: &Context<'_>) {
    if polled.is_pending() {
        match place {
            Some(waker) => waker.clone_from(cx.waker()),
            None => *place = Some(cx.waker().clone()),
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
        let read = this.poll_input(cx, buffer);
        keep_if_pending(&read, &mut this.reader, cx);
        read
    }
}

impl<G: Unpin> AsyncWrite for Tunnel<G> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = this.poll_output(cx, bytes);
        keep_if_pending(&written, &mut this.writer, cx);
        written
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = this.poll_flushed(cx);
        keep_if_pending(&flushed, &mut this.writer, cx);
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let ended = Pin::new(&mut this.io).poll_shutdown(cx);
        keep_if_pending(&ended, &mut this.writer, cx);
        ended
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
