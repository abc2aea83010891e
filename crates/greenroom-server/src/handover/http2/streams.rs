use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use slab::Slab;
use tokio::task::AbortHandle;

use crate::Limits;
use crate::event_loop::{Clock, Tick};

/// Bytes of a response that are passed on at a time: as many as a frame has by default
/// (RFC 9113, 6.5.2).
const PART_BYTES_MAX: usize = 16 * 1_024;
/// Bytes of one response that are passed on before the client has taken them.
pub(super) const STREAM_BYTES_MAX: usize = 2 * PART_BYTES_MAX;
/// What each stream may hold even while others hold all the rest, so that those which their client
/// does not read never hold up those which it does.
const ASSURED_BYTES: usize = 1_024;

/// The streams of an HTTP/2 connection, and what is held of their responses until the client takes it.
pub(in crate::handover) struct Streams {
    clock: Clock,
    /// Bytes that all streams may hold, but for those that are assured.
    shared_max: usize,
    held: Cell<usize>,
    /// When the client last took something of a response.
    taken_at: Cell<Tick>,
    /// Futures of hyper's for streams and tunnels.
    running: Cell<usize>,
    idle_since: Cell<Tick>,
    has_begun: Cell<bool>,
    all: RefCell<Slab<Weak<Stream>>>,
    /// Streams that wait for others to hold less, first come, first served.
    waiting: RefCell<VecDeque<Weak<Stream>>>,
    /// The stream whose future hyper has run next.
    begun: Cell<Option<Rc<Stream>>>,
    connection: RefCell<Waker>,
}

/// One request and its response.
pub(in crate::handover) struct Stream {
    streams: Rc<Streams>,
    key: usize,
    held: Cell<usize>,
    /// When the client took something last, or there was something to take.
    since: Cell<Tick>,
    /// The client took nothing for too long.
    is_given_up: Cell<bool>,
    is_running: Cell<bool>,
    task: Cell<Option<AbortHandle>>,
    waker: Cell<Option<Waker>>,
    /// It is among those that wait for room.
    is_queued: Cell<bool>,
}

/// A future of hyper's that runs, until it is dropped.
pub(super) struct Running {
    streams: Rc<Streams>,
    stream: Option<Rc<Stream>>,
}

impl Streams {
    pub(super) fn new(limits: &Limits, clock: Clock) -> Rc<Self> {
        let assured = ASSURED_BYTES.saturating_mul(limits.streams_max as usize);
        let now = clock.now();
        Rc::new(Self {
            clock,
            shared_max: limits.output_bytes_max.saturating_sub(assured),
            held: Cell::new(0),
            taken_at: Cell::new(now),
            running: Cell::new(0),
            idle_since: Cell::new(now),
            has_begun: Cell::new(false),
            all: RefCell::default(),
            waiting: RefCell::default(),
            begun: Cell::default(),
            connection: RefCell::new(Waker::noop().clone()),
        })
    }

    /// A stream for the request that hyper calls its service with.
    pub(in crate::handover) fn begin(self: &Rc<Self>) -> Rc<Stream> {
        let mut all = self.all.borrow_mut();
        let entry = all.vacant_entry();
        let stream = Rc::new(Stream {
            streams: Rc::clone(self),
            key: entry.key(),
            held: Cell::new(0),
            since: Cell::new(self.clock.now()),
            is_given_up: Cell::new(false),
            is_running: Cell::new(true),
            task: Cell::default(),
            waker: Cell::default(),
            is_queued: Cell::new(false),
        });
        entry.insert(Rc::downgrade(&stream));
        self.has_begun.set(true);
        self.begun.set(Some(Rc::clone(&stream)));
        stream
    }

    /// A future that hyper runs: that of the stream which has just begun, or a tunnel's.
    pub(super) fn run(self: &Rc<Self>) -> Running {
        self.running.set(self.running.get() + 1);
        Running {
            streams: Rc::clone(self),
            stream: self.begun.take(),
        }
    }

    /// Whether there was a request.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.get()
    }

    /// Since when no stream has been open; `None` if one is.
    pub(super) fn idle_since(&self) -> Option<Tick> {
        let is_idle = self.running.get() == 0 && self.stalled_since().is_none();
        is_idle.then(|| self.idle_since.get().max(self.taken_at.get()))
    }

    /// Since when, at the longest, a response has waited for the client to take something of it.
    pub(super) fn stalled_since(&self) -> Option<Tick> {
        if self.held.get() == 0 {
            return None;
        }
        let present = self.present();
        let waiting = present.iter().filter(|stream| stream.is_waited_for());
        waiting.map(|stream| stream.since.get()).min()
    }

    /// Resets the streams of whose response the client has taken nothing for too long, as `is_due` says
    /// of the tick since when. Whether the connection is to end as well: it took nothing of any, and no
    /// other stream is open.
    pub(super) fn reset_stalled(&self, is_due: impl Fn(Tick) -> bool) -> bool {
        let present = self.present();
        let waited_for = present.iter().filter(|stream| stream.is_waited_for());
        for stream in waited_for.filter(|stream| is_due(stream.since.get())) {
            stream.is_given_up.set(true);
            if let Some(task) = stream.task.take() {
                task.abort();
            }
        }
        let is_stuck = |stream: &&Rc<Stream>| stream.is_running.get() && stream.held.get() > 0;
        let stuck = present.iter().filter(is_stuck).count();
        is_due(self.taken_at.get()) && stuck == self.running.get()
    }

    /// Has `connection` woken when what is to be waited for has changed.
    pub(super) fn tell(&self, connection: &Waker) {
        self.connection.borrow_mut().clone_from(connection);
    }

    fn wake_connection(&self) {
        self.connection.borrow().wake_by_ref();
    }

    /// The streams that are there. Kept alive by the caller: the last of a stream may not go while the
    /// list is looked at.
    fn present(&self) -> Vec<Rc<Stream>> {
        let all = self.all.borrow();
        all.iter()
            .filter_map(|(_, stream)| stream.upgrade())
            .collect()
    }

    /// Has the first of those that wait for room look for it.
    fn wake_next(&self) {
        loop {
            let Some(next) = self.waiting.borrow_mut().pop_front() else {
                return;
            };
            let Some(next) = next.upgrade() else {
                continue;
            };
            next.is_queued.set(false);
            if let Some(waker) = next.waker.take() {
                return waker.wake();
            }
        }
    }
}

impl Stream {
    /// How many bytes of the response may be passed on now.
    pub(in crate::handover) fn poll_room(self: &Rc<Self>, cx: &Context<'_>) -> Poll<usize> {
        let (held, of_all) = (self.held.get(), self.streams.held.get());
        if held + PART_BYTES_MAX <= STREAM_BYTES_MAX
            && of_all + PART_BYTES_MAX <= self.streams.shared_max
        {
            return Poll::Ready(PART_BYTES_MAX);
        }
        if held == 0 {
            return Poll::Ready(ASSURED_BYTES);
        }
        self.waker.set(Some(cx.waker().clone()));
        if !self.is_queued.replace(true) {
            let mut waiting = self.streams.waiting.borrow_mut();
            waiting.push_back(Rc::downgrade(self));
        }
        Poll::Pending
    }

    /// Ready when the client has taken all that was passed on.
    pub(in crate::handover) fn poll_taken(&self, cx: &Context<'_>) -> Poll<()> {
        if self.held.get() == 0 {
            return Poll::Ready(());
        }
        self.waker.set(Some(cx.waker().clone()));
        Poll::Pending
    }

    /// So many bytes are passed on.
    pub(in crate::handover) fn pass_on(&self, bytes: usize) {
        if self.held.get() == 0 {
            self.since.set(self.streams.clock.now());
            self.streams.wake_connection();
        }
        self.held.set(self.held.get() + bytes);
        self.streams.held.set(self.streams.held.get() + bytes);
    }

    /// The client takes so many bytes of what was passed on.
    pub(in crate::handover) fn take(&self, bytes: usize) {
        let now = self.streams.clock.now();
        self.since.set(now);
        self.streams.taken_at.set(now);
        self.release(bytes);
    }

    /// So many bytes of what was passed on are held no more.
    pub(in crate::handover) fn release(&self, bytes: usize) {
        self.held.set(self.held.get() - bytes);
        self.streams.held.set(self.streams.held.get() - bytes);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
        self.streams.wake_next();
    }

    /// Whether the response ended because its client took nothing of it.
    pub(in crate::handover) fn is_given_up(&self) -> bool {
        self.is_given_up.get()
    }

    /// Its future runs as this task.
    pub(super) fn runs_as(&self, task: AbortHandle) {
        self.task.set(Some(task));
    }

    fn is_waited_for(&self) -> bool {
        self.held.get() > 0 && !self.is_given_up.get()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.streams.all.borrow_mut().remove(self.key);
    }
}

impl Running {
    /// The stream whose future it is, unless it is a tunnel's.
    pub(super) fn stream(&self) -> Option<Rc<Stream>> {
        self.stream.clone()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(stream) = &self.stream {
            stream.is_running.set(false);
        }
        let running = self.streams.running.get() - 1;
        self.streams.running.set(running);
        if running == 0 {
            self.streams.idle_since.set(self.streams.clock.now());
            self.streams.wake_connection();
        }
    }
}
