use std::fmt;
use std::io;
use std::mem;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::task::coop::poll_proceed;
use tokio::task::yield_now;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::in_flight::InFlight;
use super::io::Rewound;
use super::spelling::Spelling;
use super::websocket::{Written, close_frame};
use crate::drain::Phase;
use crate::event_loop::TICK;
use crate::memory::Held;
use crate::request_handle::Line;

/// A connection that may become a WebSocket. When the server drains, [`close_at_drain`] sends a
/// close frame between two frames of the application's; the client's reply to that ends the
/// application's side, which need not know of drains. An application that asked for the notice of
/// the drain does all that itself.
///
/// It goes wherever the application takes it, and carries the connection's permit `G` along.
pub(super) struct Tunnel<G> {
    state: Arc<Mutex<State>>,
    _guard: G,
}

/// The state of a tunnel, which belongs to the application, and to the loop while it takes leave.
pub(super) struct State {
    io: Rewound,
    written: Written,
    leaving: Leaving,
    line: Arc<Line>,
    spelling: Spelling,
    opened: Opened,
    /// The output that hyper holds, since the client does not take it. There until the connection
    /// is a tunnel.
    held: Option<Held>,
    /// The reader that waits, and the writer, in a task of its own perhaps.
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// Set when the connection is a tunnel: hyper has given it to the application.
pub(super) type Opened = Arc<AtomicBool>;

enum Leaving {
    /// Until the server drains; for good if that is the application's to deal with.
    No,
    /// The next gap between two frames is for the close frame.
    Due,
    /// The rest of the close frame, before which nothing else is sent.
    Sending(&'static [u8]),
    /// Drops what the application writes. The client has until then to reply (RFC 6455, 7.1.1); if
    /// it does not, the application reads the end of the stream, and cannot write any more.
    Done {
        reply_due: Instant,
        /// There if the application reads, and sees for itself when the client has replied or
        /// left.
        reading: Option<Pin<Box<Sleep>>>,
    },
}

/// Time that a client may take to reply to the close frame.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Tunnels that are closed before the loop looks for other work.
const CLOSED_AT_ONCE: usize = 32;

/// Sends the close frames of a loop's tunnels when the server drains: at once, whether or not
/// their applications read or write, and each [`TICK`] those for which there was no gap between
/// two frames, or no room.
pub(super) async fn close_at_drain(in_flight: Weak<InFlight>, mut told: watch::Receiver<Phase>) {
    // An error means that the server is gone, which is a reason to leave as well.
    drop(told.wait_for(|phase| *phase != Phase::Serving).await);
    let mut open = Vec::new();
    while let Some(in_flight) = in_flight.upgrade() {
        open.extend(in_flight.take_tunnels());
        drop(in_flight);
        let phase = *told.borrow();
        for (index, tunnel) in mem::take(&mut open).into_iter().enumerate() {
            if (index + 1).is_multiple_of(CLOSED_AT_ONCE) {
                yield_now().await;
            }
            let is_over = |state: Arc<Mutex<State>>| state.lock().leave(phase);
            if !tunnel.upgrade().is_none_or(is_over) {
                open.push(tunnel);
            }
        }
        sleep(TICK).await;
    }
}

impl<G> Tunnel<G> {
    pub(super) fn new(
        io: Rewound,
        line: Arc<Line>,
        spelling: Spelling,
        (opened, held): (Opened, Held),
        guard: G,
    ) -> Self {
        let state = State {
            io,
            written: Written::Head(Vec::new()),
            leaving: Leaving::No,
            line,
            spelling,
            opened,
            held: Some(held),
            reader: None,
            writer: None,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            _guard: guard,
        }
    }

    pub(super) fn state(&self) -> Weak<Mutex<State>> {
        Arc::downgrade(&self.state)
    }
}

impl State {
    /// Takes leave of the client, as far as that can be done now. Returns `true` once there is
    /// nothing left to do.
    fn leave(&mut self, phase: Phase) -> bool {
        if matches!(self.leaving, Leaving::No) {
            match self.written {
                Written::Head(_) => return false,
                Written::Frames(_) if !self.line.is_notified() => self.leaving = Leaving::Due,
                Written::Frames(_) | Written::Other => return true,
            }
        }
        if matches!(self.leaving, Leaving::Due) && self.written.is_between_frames() {
            self.leaving = Leaving::Sending(close_frame(phase));
        }
        let Poll::Ready(sent) = self.poll_close_frame() else {
            return false;
        };
        let reply_timeout = match sent {
            Ok(()) => RESPONSE_TIMEOUT,
            // There is nobody to reply.
            Err(_) => Duration::ZERO,
        };
        self.leaving = Leaving::Done {
            reply_due: Instant::now() + reply_timeout,
            reading: None,
        };
        self.wake_both();
        true
    }

    /// Sends the close frame, if it is time for it. Whoever writes keeps its place as the one that
    /// the socket wakes.
    fn poll_close_frame(&mut self) -> Poll<io::Result<()>> {
        let Leaving::Sending(left) = &mut self.leaving else {
            return Poll::Pending;
        };
        let writer = self.writer.as_ref().unwrap_or(Waker::noop());
        let mut cx = Context::from_waker(writer);
        let mut io = Pin::new(&mut self.io);
        while !left.is_empty() {
            let sent = ready!(io.as_mut().poll_write(&mut cx, left))?;
            *left = &left[sent..];
        }
        io.poll_flush(&mut cx)
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
        if let Leaving::Done { reply_due, reading } = &mut self.leaving {
            let due = reading.get_or_insert_with(|| Box::pin(sleep_until(*reply_due)));
            if due.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
        }
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }

    fn poll_output(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.leaving {
            Leaving::Done { .. } => return self.poll_dropped(cx).map_ok(|()| bytes.len()),
            // The writer is woken when that is done.
            Leaving::Sending(_) => return Poll::Pending,
            Leaving::Due if self.written.is_between_frames() => return Poll::Pending,
            Leaving::No | Leaving::Due => {}
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
        if matches!(self.leaving, Leaving::Done { .. }) {
            ready!(self.poll_dropped(cx))?;
        }
        self.look_whether_opened();
        Pin::new(&mut self.io).poll_flush(cx)
    }

    /// Drops output that comes after the close frame; an error once that is over.
    fn poll_dropped(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Leaving::Done { reply_due, reading } = &self.leaving else {
            return Poll::Ready(Ok(()));
        };
        // What is dropped never has to wait: a writer that goes on would hold up its loop for ever.
        ready!(poll_proceed(cx)).made_progress();
        let is_due = Instant::now() >= *reply_due;
        // One that only writes learns of the client's end from nobody else.
        if is_due || (reading.is_none() && self.io.has_ended()) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        Poll::Ready(Ok(()))
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

impl<G> AsyncRead for Tunnel<G> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut state = self.state.lock();
        let read = state.poll_input(cx, buffer);
        keep_if_pending(&read, &mut state.reader, cx);
        read
    }
}

impl<G> AsyncWrite for Tunnel<G> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.state.lock();
        let written = state.poll_output(cx, bytes);
        keep_if_pending(&written, &mut state.writer, cx);
        written
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.state.lock();
        let flushed = state.poll_flushed(cx);
        keep_if_pending(&flushed, &mut state.writer, cx);
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.state.lock();
        let ended = Pin::new(&mut state.io).poll_shutdown(cx);
        keep_if_pending(&ended, &mut state.writer, cx);
        ended
    }
}

impl<G> fmt::Debug for Tunnel<G> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Tunnel").finish_non_exhaustive()
    }
}
