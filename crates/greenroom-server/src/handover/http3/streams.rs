use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use h3::error::Code;
use quinn::{SendStream, StoppedError, VarInt};
use slab::Slab;
use tokio::task::AbortHandle;

use super::HEADS_READ;
use super::transport::READ_BYTES_MAX;
use crate::Limits;
use crate::event_loop::{Clock, NEVER, Tick, tick_after};
use crate::handover::http2::Owed;
use crate::memory::{Held, Memory};
use crate::quic::{INPUT_BYTES_MAX, OUTPUT_BYTES_CEILING, streams_max};

/// Streams that may have ended for faults of the client before its connection ends.
const FAULTS_MAX: usize = 1_024;
/// Streams that a client may cancel within a tick, or `streams_max` if that is more, as all that
/// are open may be cancelled at once; with more the connection ends.
const CANCELLED_MAX: usize = 100;
/// The difference between the numbers of two requests' streams in a row (RFC 9000, 2.1).
const NUMBERS_APART: u64 = 4;
/// Bytes of a head that are received even while the memory for all connections is used up, so that
/// its client gets a response.
const ASSURED_BYTES: usize = 4 * 1_024;

/// The streams of a connection, and what is held for them.
pub(super) struct Streams {
    quic: quinn::Connection,
    clock: Clock,
    write_timeout: Duration,
    /// Time in which a client must have taken what QUIC may hold of responses. It does not tell how
    /// much of that is left, so this is `write_timeout` and what it takes at the least rate.
    rest_timeout: Duration,
    cancelled_max: usize,
    /// Bytes a second that a client must take.
    rate_min: u64,
    output_bytes_max: u64,
    /// Bytes of a stream that may come before its head is whole.
    ahead_bytes_max: usize,
    /// Of all streams: what QUIC takes no more of.
    owed: Owed,
    idle_since: Cell<Tick>,
    /// The number of the stream that came last.
    last: Cell<Option<u64>>,
    /// The first number that the server has said that it does not serve.
    refused_from: Cell<u64>,
    faults: Cell<usize>,
    /// Streams that were cancelled within this tick.
    cancelled: Cell<(Tick, usize)>,
    /// Bytes of the heads of requests that have no response yet.
    heads: Cell<usize>,
    /// Bytes that QUIC may hold of the bodies of requests.
    bodies: Cell<u64>,
    /// Bytes that were given to QUIC for streams of which something may have to be sent again.
    unacknowledged: Cell<u64>,
    /// Bytes that the connection holds, as it last told the server.
    held: Held,
    all: RefCell<Slab<Weak<Stream>>>,
    /// The stream that came last. Whoever has its two directions holds it: h3 drops one that comes
    /// behind a GOAWAY without a word.
    begun: Cell<Weak<Stream>>,
    connection: RefCell<Waker>,
}

type Stopped = dyn Future<Output = Result<Option<VarInt>, StoppedError>>;

/// One request and its response.
pub(super) struct Stream {
    streams: Rc<Streams>,
    number: u64,
    key: usize,
    head: Cell<usize>,
    /// It has a task, and is not rejected.
    is_served: Cell<bool>,
    /// The head is whole.
    is_begun: Cell<bool>,
    body: Cell<u64>,
    /// Bytes that were given to QUIC.
    written: Cell<u64>,
    /// Bytes that wait for QUIC to take them.
    waiting: Cell<usize>,
    /// The tick since which the client has taken nothing though it was waited for.
    waits_since: Cell<Option<Tick>>,
    /// The code with which it is reset if it is dropped as it is.
    reset: Cell<Option<Code>>,
    /// The response is not whole yet.
    is_cut: Rc<Cell<bool>>,
    task: Cell<Option<AbortHandle>>,
    stopped: RefCell<Pin<Box<Stopped>>>,
}

/// The end of a stream's response, as the client has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The client has it all.
    Acknowledged,
    /// The client wants no more of it, or is gone.
    Cancelled,
}

impl Streams {
    pub(super) fn new(
        limits: &Limits,
        clock: Clock,
        memory: Arc<Memory>,
        quic: quinn::Connection,
    ) -> Rc<Self> {
        let now = clock.now();
        let output_bytes_max = limits.output_bytes_max.min(OUTPUT_BYTES_CEILING) as u64;
        // Without a least rate it is a byte a second.
        let at_least_rate = output_bytes_max / limits.response_rate_min.max(1);
        let at_least_rate = Duration::from_secs(at_least_rate);
        Rc::new(Self {
            quic,
            clock,
            write_timeout: limits.write_timeout,
            rest_timeout: limits.write_timeout.saturating_add(at_least_rate),
            cancelled_max: CANCELLED_MAX.max(streams_max(limits) as usize),
            rate_min: limits.response_rate_min,
            output_bytes_max,
            ahead_bytes_max: limits
                .head_bytes_max
                .saturating_mul(HEADS_READ)
                .saturating_add(READ_BYTES_MAX),
            owed: Owed::new(now),
            idle_since: Cell::new(now),
            last: Cell::new(None),
            refused_from: Cell::new(u64::MAX),
            faults: Cell::new(0),
            cancelled: Cell::default(),
            heads: Cell::new(0),
            bodies: Cell::new(0),
            unacknowledged: Cell::new(0),
            held: Held::new(memory),
            all: RefCell::default(),
            begun: Cell::default(),
            connection: RefCell::new(Waker::noop().clone()),
        })
    }

    /// A stream that came, whose response goes by `send`.
    pub(super) fn begin(self: &Rc<Self>, send: &SendStream) -> Rc<Stream> {
        let mut all = self.all.borrow_mut();
        let entry = all.vacant_entry();
        let number = VarInt::from(send.id()).into_inner();
        let stream = Rc::new(Stream {
            streams: Rc::clone(self),
            number,
            key: entry.key(),
            head: Cell::new(0),
            is_served: Cell::new(false),
            is_begun: Cell::new(false),
            body: Cell::new(0),
            written: Cell::new(0),
            waiting: Cell::new(0),
            waits_since: Cell::new(None),
            reset: Cell::new(None),
            is_cut: Rc::new(Cell::new(true)),
            task: Cell::default(),
            stopped: RefCell::new(Box::pin(send.stopped())),
        });
        entry.insert(Rc::downgrade(&stream));
        self.last.set(Some(number));
        self.begun.set(Rc::downgrade(&stream));
        stream
    }

    /// Takes the stream that came last.
    pub(super) fn begun(&self) -> Option<Rc<Stream>> {
        self.begun.take().upgrade()
    }

    /// Returns `true` if there was a stream.
    pub(super) fn has_begun(&self) -> bool {
        self.last.get().is_some()
    }

    /// The server says that it serves none of the streams that come behind the next `more`, less
    /// one: a GOAWAY names the first that is not served (RFC 9114, 5.2).
    pub(super) fn leave_after(&self, more: usize) {
        let next = self.last.get().unwrap_or(0);
        let more = (more as u64).saturating_mul(NUMBERS_APART);
        self.refused_from.set(next.saturating_add(more));
    }

    /// Returns the tick since which no stream has been open; `None` if one is. Those that were
    /// rejected do not count, or a client could keep a connection by them that is to end.
    pub(super) fn idle_since(&self) -> Option<Tick> {
        self.all.borrow().is_empty().then(|| self.idle_since.get())
    }

    /// Closes the connection at once.
    pub(super) fn close(&self, code: Code) {
        super::close(&self.quic, code);
    }

    /// Counts a stream that has ended for a fault of the client.
    pub(super) fn note_fault(&self) {
        self.faults.set(self.faults.get() + 1);
        self.wake_connection();
    }

    /// Counts a stream that the client has cancelled.
    pub(super) fn note_cancelled(&self) {
        let now = self.clock.now();
        let count = match self.cancelled.get() {
            (tick, count) if tick == now => count + 1,
            _ => 1,
        };
        self.cancelled.set((now, count));
        if count > self.cancelled_max {
            self.faults.set(FAULTS_MAX);
            self.note_fault();
        }
    }

    /// Returns `true` if the client is too much trouble.
    pub(super) fn has_faults_too_many(&self) -> bool {
        self.faults.get() > FAULTS_MAX
    }

    /// Has `connection` woken when what is to be waited for has changed.
    pub(super) fn tell(&self, connection: &Waker) {
        self.connection.borrow_mut().clone_from(connection);
    }

    /// Ends the streams of whose response the client took nothing for too long. Returns `true` if
    /// it takes too little of all together.
    pub(super) fn give_up_slow(&self) -> bool {
        self.settle();
        let now = self.clock.now();
        for stream in self.present() {
            if stream.due() <= now {
                if stream.is_finished() {
                    // QUIC is to forget what it has of it.
                    stream.is_cut.set(true);
                    stream.reset_with(Code::H3_REQUEST_CANCELLED);
                }
                stream.release(stream.waiting.get());
                stream.waits_since.set(None);
                if let Some(task) = stream.task.take() {
                    task.abort();
                }
            }
        }
        self.owed.held() > 0 && self.owed.is_behind_by(self.write_timeout)
    }

    /// Returns the tick at which a client that takes nothing more is given up.
    pub(super) fn taken_until(&self) -> Tick {
        let present = self.present();
        let first = present.iter().map(|stream| stream.due()).min();
        let of_all = match self.owed.held() {
            0 => NEVER,
            _ => self.owed.taken_until(self.write_timeout),
        };
        first.unwrap_or(NEVER).min(of_all)
    }

    fn settle(&self) {
        self.owed.settle(self.clock.now(), true, self.rate_min);
    }

    fn present(&self) -> Vec<Rc<Stream>> {
        let all = self.all.borrow();
        all.iter()
            .filter_map(|(_, stream)| stream.upgrade())
            .collect()
    }

    fn wake_connection(&self) {
        self.connection.borrow().wake_by_ref();
    }

    /// Tells the server what the connection holds, at most: QUIC does not tell how much of a window
    /// is used, so that counts as a whole.
    fn note_held(&self) {
        let bodies = self.bodies.get().min(INPUT_BYTES_MAX.into());
        let responses = self.unacknowledged.get().min(self.output_bytes_max);
        let quic = usize::try_from(bodies + responses).unwrap_or(usize::MAX);
        self.held.note(quic.saturating_add(self.heads.get()));
    }
}

impl Stream {
    pub(super) fn streams(&self) -> &Streams {
        &self.streams
    }

    /// Its request is served by this task.
    pub(super) fn runs_as(&self, task: AbortHandle) {
        self.is_served.set(true);
        self.task.set(Some(task));
    }

    /// Returns `true` if the server has said that it does not serve it.
    pub(super) fn is_refused(&self) -> bool {
        self.number >= self.streams.refused_from.get()
    }

    /// Counts bytes that were received, if they are of the head or came ahead of it; `false` if
    /// they are too many, or there is no memory for them.
    pub(super) fn receive(&self, bytes: usize) -> bool {
        if !self.is_begun.get() {
            let head = self.head.get() + bytes;
            if head > self.streams.ahead_bytes_max {
                return false;
            }
            self.hold_head(head);
            return head <= ASSURED_BYTES || !self.streams.held.is_full_beside();
        }
        true
    }

    /// The head is whole, and holds so many bytes.
    pub(super) fn begin(&self, head_bytes: usize) {
        self.is_begun.set(true);
        self.hold_head(head_bytes);
    }

    /// Sets the bytes of its request's head, which count until the response begins.
    pub(super) fn hold_head(&self, bytes: usize) {
        let of_all = &self.streams.heads;
        of_all.set(of_all.get() + bytes - self.head.replace(bytes));
        self.streams.note_held();
    }

    /// Sets the bytes that QUIC may hold of its request's body.
    pub(super) fn hold_body(&self, bytes: u64) {
        let of_all = &self.streams.bodies;
        of_all.set(of_all.get() + bytes - self.body.replace(bytes));
        self.streams.note_held();
    }

    /// So many bytes wait for QUIC, which takes no more.
    pub(super) fn wait(&self, bytes: usize) {
        if self.waits_since.get().is_some() {
            return;
        }
        // What went before counts no more.
        self.streams.settle();
        self.streams.owed.hold(bytes);
        self.waiting.set(bytes);
        self.waits_since.set(Some(self.streams.clock.now()));
        self.streams.wake_connection();
    }

    /// QUIC has taken so many bytes.
    pub(super) fn take(&self, bytes: usize) {
        if self.waits_since.take().is_some() {
            self.streams.settle();
            self.release(self.waiting.get());
        }
        self.streams.owed.note_taken(bytes);
        self.written.set(self.written.get() + bytes as u64);
        let of_all = &self.streams.unacknowledged;
        of_all.set(of_all.get() + bytes as u64);
        self.streams.note_held();
    }

    fn release(&self, bytes: usize) {
        self.streams.owed.release(bytes);
        self.waiting.set(self.waiting.get() - bytes);
    }

    /// Returns the tick at which it is given up.
    fn due(&self) -> Tick {
        let since = self.waits_since.get();
        let time = if self.is_finished() {
            self.streams.rest_timeout
        } else {
            self.streams.write_timeout
        };
        since.map_or(NEVER, |since| tick_after(since, time))
    }

    /// Returns `true` if all of the response was given to QUIC, which may hold some of it.
    fn is_finished(&self) -> bool {
        !self.is_cut.get()
    }

    /// Has it reset with this code if it is dropped from now on.
    pub(super) fn reset_with(&self, code: Code) {
        self.reset.set(Some(code));
    }

    pub(super) fn reset_code(&self) -> Option<Code> {
        self.reset.get()
    }

    /// All of the response was given to QUIC. Its client has the time to take it at the least rate.
    pub(super) fn finish(&self) {
        self.is_cut.set(false);
        self.reset.set(None);
        self.wait(0);
    }

    /// Returns what is `true` until the response is whole.
    pub(super) fn cut(&self) -> Rc<Cell<bool>> {
        Rc::clone(&self.is_cut)
    }

    /// Ready when the client has the response, or wants no more of it; not to be polled again then.
    pub(super) fn poll_ended(&self, cx: &mut Context<'_>) -> Poll<Ended> {
        let stopped = self.stopped.borrow_mut().as_mut().poll(cx);
        stopped.map(|stopped| match stopped {
            Ok(None) => Ended::Acknowledged,
            Ok(Some(_)) | Err(_) => Ended::Cancelled,
        })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.release(self.waiting.get());
        self.hold_head(0);
        self.hold_body(0);
        let streams = &self.streams;
        let unacknowledged = &streams.unacknowledged;
        unacknowledged.set(unacknowledged.get() - self.written.get());
        streams.note_held();
        let mut all = streams.all.borrow_mut();
        all.remove(self.key);
        if all.is_empty() && self.is_served.get() {
            streams.idle_since.set(streams.clock.now());
        }
        drop(all);
        streams.wake_connection();
    }
}
