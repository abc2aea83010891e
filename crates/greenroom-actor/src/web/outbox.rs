use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use atomic_waker::AtomicWaker;
use axum::extract::ws::CloseFrame;
use parking_lot::Mutex;
use thiserror::Error;

use super::frame::{Frame, InvalidClose, close_frame};
use crate::notifier::Notifier;

/// The default size of an outbox, in messages.
pub const OUTBOX_DEFAULT: usize = 64;
/// The largest outbox, in messages.
pub const OUTBOX_MAX: usize = 1 << 16;

/// The policy for a message to a full outbox: the client reads slower than the actor writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlowReader {
    /// The message takes the place of the oldest, which the client never gets. For messages of
    /// which the newest counts, such as positions or prices.
    DropOldest,
    /// The connection is closed, and messages that wait are dropped. The client knows that it
    /// missed something, and connects again.
    #[default]
    Close,
}

/// The way to the client: bounded, in messages. Clones are the same outbox; others than the actor
/// may write to it too.
///
/// Beyond what it holds, a few messages (up to 16 KiB) and the socket's buffer are on their way.
pub struct Outbox<T>(Arc<State<T>>);

struct State<T> {
    queue: Mutex<Queue<T>>,
    capacity: usize,
    slow_reader: SlowReader,
    connection: &'static str,
    dropped: AtomicU64,
    /// Woken when there is something to send: the connection.
    taker: AtomicWaker,
    /// Notified when there is room.
    room: Notifier,
    /// Notified when no message waits.
    drained: Notifier,
    /// Notified when nothing more is let in.
    closing: Notifier,
    /// Stops the actor.
    at_end: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

struct Queue<T> {
    waiting: VecDeque<T>,
    end: Option<End>,
}

/// The end of an outbox: nothing more is let in.
#[derive(Clone, Debug)]
pub(super) enum End {
    /// Messages that wait are sent, then this.
    Close(CloseFrame),
    /// The client has left.
    Left,
}

/// The next action of the connection.
pub(super) enum Next<T> {
    Send(T),
    End(End),
}

/// An error: the connection has ended or is about to. The message comes back.
#[derive(Error)]
#[error("the connection has ended")]
pub struct OutboxClosed<T>(pub T);

impl<T> fmt::Debug for OutboxClosed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OutboxClosed(..)")
    }
}

impl<T> Outbox<T> {
    pub(super) fn new(capacity: usize, slow_reader: SlowReader, connection: &'static str) -> Self {
        let queue = Queue {
            waiting: VecDeque::new(),
            end: None,
        };
        Self(Arc::new(State {
            queue: Mutex::new(queue),
            capacity,
            slow_reader,
            connection,
            dropped: AtomicU64::new(0),
            taker: AtomicWaker::new(),
            room: Notifier::new(),
            drained: Notifier::new(),
            closing: Notifier::new(),
            at_end: OnceLock::new(),
        }))
    }

    /// Writes a message, without waiting. If the outbox is full, [`SlowReader`] says what happens.
    ///
    /// # Errors
    ///
    /// The message, if the connection has ended or is about to, because of this message too.
    pub fn tell(&self, message: impl Into<T>) -> Result<(), OutboxClosed<T>> {
        let message = message.into();
        let mut queue = self.0.queue.lock();
        if queue.end.is_some() {
            return Err(OutboxClosed(message));
        }
        let is_full = queue.waiting.len() >= self.0.capacity;
        if is_full && self.0.slow_reader == SlowReader::Close {
            drop(queue);
            self.give_up();
            return Err(OutboxClosed(message));
        }
        let oldest = if is_full {
            queue.waiting.pop_front()
        } else {
            None
        };
        queue.waiting.push_back(message);
        drop(queue);
        self.count_dropped(usize::from(oldest.is_some()));
        self.0.taker.wake();
        Ok(())
    }

    /// Writes a message, and waits for room if the outbox is full: as fast as the client reads.
    /// Dropped before it is ready, it has written nothing.
    ///
    /// # Errors
    ///
    /// The message, if the connection has ended or is about to.
    pub async fn send(&self, message: impl Into<T>) -> Result<(), OutboxClosed<T>> {
        let mut message = message.into();
        loop {
            // Listened to before the try, or room made in between would go unnoticed.
            let room = self.0.room.listen();
            message = match self.put(message) {
                Ok(()) => return Ok(()),
                Err(Refused::Closed(message)) => return Err(OutboxClosed(message)),
                Err(Refused::Full(message)) => message,
            };
            room.await;
        }
    }

    /// Waits until no message waits, or the connection has ended: for a writer that makes the next
    /// message of what is new by then, rather than have it wait and grow old.
    pub async fn drained(&self) {
        loop {
            // Listened to before the look, or the last message taken in between would go unnoticed.
            let drained = self.0.drained.listen();
            if self.waiting() == 0 || self.is_closed() {
                return;
            }
            drained.await;
        }
    }

    /// Returns the number of messages that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.queue.lock().waiting.len()
    }

    /// Returns the number of messages that the client never gets: dropped because it reads slowly,
    /// or left when the connection ended.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }

    /// Returns `true` if the connection has ended or is about to.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.queue.lock().end.is_some()
    }

    /// Sets a function to be called when nothing more is let in: at once, if that is so.
    pub(super) fn at_end(&self, call: impl Fn() + Send + Sync + 'static) {
        let _ = self.0.at_end.set(Box::new(call));
        if self.is_closed() {
            self.stop_actor();
        }
    }

    pub(super) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Next<T>> {
        self.0.taker.register(cx.waker());
        let mut queue = self.0.queue.lock();
        if let Some(message) = queue.waiting.pop_front() {
            let is_drained = queue.waiting.is_empty();
            drop(queue);
            self.0.room.notify_additional(1);
            if is_drained {
                self.0.drained.notify(usize::MAX);
            }
            return Poll::Ready(Next::Send(message));
        }
        match &queue.end {
            Some(end) => Poll::Ready(Next::End(end.clone())),
            None => Poll::Pending,
        }
    }

    /// Lets nothing more in, and ends the connection with this frame when it has sent what waits.
    /// The first end counts.
    pub(super) fn finish(&self, frame: CloseFrame) {
        self.end(End::Close(frame), false);
    }

    /// Ends the outbox as the client has left, or is dropped: messages that wait are dropped.
    pub(super) fn leave(&self) {
        self.end(End::Left, true);
    }

    /// Waits until nothing more is let in.
    pub(super) async fn closing(&self) {
        loop {
            let closing = self.0.closing.listen();
            if self.is_closed() {
                return;
            }
            closing.await;
        }
    }

    fn give_up(&self) {
        let connection = self.0.connection;
        metrics::counter!("greenroom_actor_slow_readers_closed_total", "connection" => connection)
            .increment(1);
        let frame = CloseFrame {
            code: SLOW_READER_CODE,
            reason: "the client reads too slowly".into(),
        };
        self.end(End::Close(frame), true);
    }

    fn end(&self, end: End, is_dropping: bool) {
        let mut queue = self.0.queue.lock();
        let dropped = if is_dropping {
            std::mem::take(&mut queue.waiting)
        } else {
            VecDeque::new()
        };
        queue.end.get_or_insert(end);
        drop(queue);
        self.count_dropped(dropped.len());
        self.0.taker.wake();
        self.0.room.notify(usize::MAX);
        self.0.drained.notify(usize::MAX);
        self.0.closing.notify(usize::MAX);
        self.stop_actor();
    }

    pub(super) fn stop_actor(&self) {
        if let Some(stop) = self.0.at_end.get() {
            stop();
        }
    }

    fn put(&self, message: T) -> Result<(), Refused<T>> {
        let mut queue = self.0.queue.lock();
        if queue.end.is_some() {
            return Err(Refused::Closed(message));
        }
        if queue.waiting.len() >= self.0.capacity {
            return Err(Refused::Full(message));
        }
        queue.waiting.push_back(message);
        drop(queue);
        self.0.taker.wake();
        Ok(())
    }

    fn count_dropped(&self, messages: usize) {
        if messages > 0 {
            let messages = messages as u64;
            self.0.dropped.fetch_add(messages, Ordering::Relaxed);
            let connection = self.0.connection;
            metrics::counter!("greenroom_actor_outbox_dropped_total", "connection" => connection)
                .increment(messages);
        }
    }
}

impl Outbox<Frame> {
    /// Closes the connection with this code and reason when what waits is sent, and stops the
    /// actor. Nothing more is let in. Without it, a connection is closed with the code that
    /// [`websocket`](super::websocket) says. Without effect on one that is about to end.
    ///
    /// # Errors
    ///
    /// If the code is none that a server may send, or the reason is longer than 123 bytes.
    pub fn close(&self, code: u16, reason: &str) -> Result<(), InvalidClose> {
        close_frame(code, reason).map(|frame| self.finish(frame))
    }
}

/// The close code "policy violation" (RFC 6455, 7.4.1).
const SLOW_READER_CODE: u16 = 1008;

enum Refused<T> {
    Full(T),
    Closed(T),
}

impl<T> Clone for Outbox<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Outbox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox")
            .field("waiting", &self.waiting())
            .field("capacity", &self.0.capacity)
            .field("dropped", &self.dropped())
            .finish_non_exhaustive()
    }
}
