use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use slab::Slab;
use tokio::task::AbortHandle;

use super::owed::{Obstacle, Owed};
use crate::Limits;
use crate::event_loop::{Clock, NEVER, Tick, tick_after};
use crate::handover::in_flight::Entry;

/// Bytes of a response in one chunk: as many as a frame has by default (RFC 9113, 6.5.2).
const PART_BYTES_MAX: usize = 16 * 1_024;
/// Bytes of one response that are passed on before the client has taken them.
pub(super) const STREAM_BYTES_MAX: usize = 2 * PART_BYTES_MAX;
/// Bytes that each stream may hold even while others hold all the rest, so that those which their
/// client does not read never hold up those which it does.
const ASSURED_BYTES: usize = 1_024;
/// Divisor of what all streams may hold for what is kept free for those that hold nothing: however
/// many streams there may be, one that is alone is to have chunks of full length.
const ASSURED_SHARE: usize = 2;
/// Bytes that each stream may hold even while others hold all that may be held, which is only where
/// that is too little to assure them to each of `streams_max`. These are beyond it.
const LEAST_BYTES: usize = 64;

/// The streams of an HTTP/2 connection, and what is held of their responses until the client takes
/// it.
pub(in crate::handover) struct Streams {
    clock: Clock,
    /// Bytes that all streams may hold.
    held_max: usize,
    /// The same, but for those that are assured.
    shared_max: usize,
    /// Bytes in a chunk of a stream that is not held up by others.
    part_bytes_max: usize,
    write_timeout: Duration,
    /// Bytes a second that a client must take.
    rate_min: u64,
    /// The obstacle when the connection was looked at last.
    obstacle: Cell<Obstacle>,
    /// Of all streams.
    owed: Owed,
    /// Bytes of the heads of requests that have no response yet.
    heads: Cell<usize>,
    /// The tick at which the client last took something of a response.
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
    /// The line of the tunnel whose future hyper runs next.
    tunnel: Cell<Weak<Entry>>,
    connection: RefCell<Waker>,
}

/// One request and its response.
pub(in crate::handover) struct Stream {
    streams: Rc<Streams>,
    key: usize,
    owed: Owed,
    /// Bytes of the request's head, until the response begins.
    head: Cell<usize>,
    /// The client took too little for too long.
    is_given_up: Cell<bool>,
    /// All of the response was passed on.
    is_whole: Cell<bool>,
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
    /// That of a tunnel: hyper drops the request with the response.
    _line: Option<Rc<Entry>>,
}

impl Streams {
    pub(super) fn new(limits: &Limits, clock: Clock) -> Rc<Self> {
        let held_max = limits.output_bytes_max;
        let assured = ASSURED_BYTES.saturating_mul(limits.streams_max as usize);
        let shared_max = held_max - assured.min(held_max / ASSURED_SHARE);
        let now = clock.now();
        Rc::new(Self {
            clock,
            held_max,
            shared_max,
            part_bytes_max: PART_BYTES_MAX.min(shared_max).max(ASSURED_BYTES),
            write_timeout: limits.write_timeout,
            rate_min: limits.response_rate_min,
            obstacle: Cell::new(Obstacle::Server),
            owed: Owed::new(now),
            heads: Cell::new(0),
            taken_at: Cell::new(now),
            running: Cell::new(0),
            idle_since: Cell::new(now),
            has_begun: Cell::new(false),
            all: RefCell::default(),
            waiting: RefCell::default(),
            begun: Cell::default(),
            tunnel: Cell::default(),
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
            owed: Owed::new(self.clock.now()),
            head: Cell::new(0),
            is_given_up: Cell::new(false),
            is_whole: Cell::new(false),
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
            _line: self.tunnel.take().upgrade(),
        }
    }

    /// Returns `true` if there was a request.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.get()
    }

    /// Returns the tick at which something of a response was last taken to be sent.
    pub(super) fn taken_at(&self) -> Tick {
        self.taken_at.get()
    }

    /// Returns the tick since which no stream has been open; `None` if one is.
    pub(super) fn idle_since(&self) -> Option<Tick> {
        let is_idle = self.running.get() == 0 && !self.is_waited_for();
        is_idle.then(|| self.idle_since.get().max(self.taken_at.get()))
    }

    /// Returns `true` if the client is still to take something.
    fn is_waited_for(&self) -> bool {
        let all = self.all.borrow();
        let mut all = all.iter().filter_map(|(_, stream)| stream.upgrade());
        self.owed.held() > 0 && all.any(|stream| stream.is_waited_for())
    }

    /// Bytes of requests' heads and of responses that are held.
    pub(super) fn held(&self) -> usize {
        self.heads.get() + self.owed.held()
    }

    /// Counts the time that has gone by against the client where it was waited for; from now on
    /// responses wait for `obstacle`.
    pub(super) fn settle(&self, obstacle: Obstacle) {
        self.settle_all();
        for stream in self.present() {
            stream.settle();
        }
        self.obstacle.set(obstacle);
    }

    fn settle_all(&self) {
        let counts = self.obstacle.get() == Obstacle::ConnectionWindow;
        self.owed.settle(self.clock.now(), counts, self.rate_min);
    }

    /// Returns the tick at which a client that takes nothing more is given up. It must have been
    /// settled at this one.
    pub(super) fn taken_until(&self) -> Tick {
        let until = |owed: &Owed| owed.taken_until(self.write_timeout);
        match self.obstacle.get() {
            Obstacle::ConnectionWindow if self.is_waited_for() => until(&self.owed),
            Obstacle::ConnectionWindow | Obstacle::Server => NEVER,
            Obstacle::StreamWindow => {
                let present = self.present();
                let waiting = present.iter().filter(|stream| stream.is_waited_for());
                waiting
                    .map(|stream| until(&stream.owed))
                    .min()
                    .unwrap_or(NEVER)
            }
        }
    }

    /// Resets the streams of whose response the client took too little for too long; all of them if
    /// it is the connection's window that it does not open. Returns `true` if the connection is to
    /// end as well: because of that, or because nothing of any was taken, and no other stream is
    /// open.
    pub(super) fn give_up_slow(&self) -> bool {
        let is_slow = |owed: &Owed| owed.is_behind_by(self.write_timeout);
        let of_all = match self.obstacle.get() {
            Obstacle::Server => return false,
            Obstacle::ConnectionWindow if !is_slow(&self.owed) => return false,
            Obstacle::ConnectionWindow => true,
            Obstacle::StreamWindow => false,
        };
        let present = self.present();
        let waited_for = present.iter().filter(|stream| stream.is_waited_for());
        let mut slow = waited_for
            .filter(|stream| of_all || is_slow(&stream.owed))
            .peekable();
        if slow.peek().is_none() {
            return false;
        }
        for stream in slow {
            stream.is_given_up.set(true);
            if let Some(task) = stream.task.take() {
                task.abort();
            }
        }
        let is_stuck = |stream: &&Rc<Stream>| stream.is_running.get() && stream.owed.held() > 0;
        let stuck = present.iter().filter(is_stuck).count();
        let taken_until = tick_after(self.taken_at.get(), self.write_timeout);
        of_all || (taken_until <= self.clock.now() && stuck == self.running.get())
    }

    /// Has `connection` woken when what is to be waited for has changed.
    pub(super) fn tell(&self, connection: &Waker) {
        self.connection.borrow_mut().clone_from(connection);
    }

    fn wake_connection(&self) {
        self.connection.borrow().wake_by_ref();
    }

    /// The streams that are there. Kept alive by the caller: the last of a stream may not go while
    /// the list is looked at.
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
    /// Returns the number of bytes of the response that may be passed on now.
    pub(in crate::handover) fn poll_room(self: &Rc<Self>, cx: &Context<'_>) -> Poll<usize> {
        let streams = &self.streams;
        let (held, of_all) = (self.owed.held(), streams.owed.held());
        let part = streams.part_bytes_max;
        if held + part <= STREAM_BYTES_MAX && of_all + part <= streams.shared_max {
            return Poll::Ready(part);
        }
        if held == 0 {
            let is_full = of_all + ASSURED_BYTES > streams.held_max;
            return Poll::Ready(if is_full { LEAST_BYTES } else { ASSURED_BYTES });
        }
        self.waker.set(Some(cx.waker().clone()));
        if !self.is_queued.replace(true) {
            streams.waiting.borrow_mut().push_back(Rc::downgrade(self));
        }
        Poll::Pending
    }

    /// Ready when the client has taken all that was passed on.
    pub(in crate::handover) fn poll_taken(&self, cx: &Context<'_>) -> Poll<()> {
        if self.owed.held() == 0 {
            return Poll::Ready(());
        }
        self.waker.set(Some(cx.waker().clone()));
        Poll::Pending
    }

    /// Counts bytes that are passed on.
    pub(in crate::handover) fn pass_on(&self, bytes: usize) {
        // What went before counts no more.
        self.streams.settle_all();
        self.settle();
        if self.owed.held() == 0 {
            self.streams.wake_connection();
        }
        self.owed.hold(bytes);
        self.streams.owed.hold(bytes);
    }

    /// Counts bytes that the client takes of what was passed on.
    pub(in crate::handover) fn take(&self, bytes: usize) {
        self.streams.settle_all();
        self.settle();
        self.owed.note_taken(bytes);
        self.streams.owed.note_taken(bytes);
        self.streams.taken_at.set(self.streams.clock.now());
        self.release(bytes);
    }

    /// Releases bytes of what was passed on.
    pub(in crate::handover) fn release(&self, bytes: usize) {
        self.owed.release(bytes);
        self.streams.owed.release(bytes);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
        self.streams.wake_next();
    }

    fn settle(&self) {
        let streams = &self.streams;
        let counts = streams.obstacle.get() == Obstacle::StreamWindow;
        self.owed
            .settle(streams.clock.now(), counts, streams.rate_min);
    }

    /// Sets the bytes of its request's head, which count until the response begins.
    pub(in crate::handover) fn hold_head(&self, bytes: usize) {
        let before = self.head.replace(bytes);
        let of_all = &self.streams.heads;
        of_all.set(of_all.get() + bytes - before);
    }

    /// The response opens a tunnel, which is under way for as long as its future runs. What it
    /// carries is no content of the response, which is whole.
    pub(in crate::handover) fn begin_tunnel(&self, line: &Rc<Entry>) {
        self.streams.tunnel.set(Rc::downgrade(line));
        self.note_whole(true);
    }

    /// Notes whether all of the response was passed on, and nothing of that was dropped.
    pub(in crate::handover) fn note_whole(&self, is_whole: bool) {
        self.is_whole.set(is_whole);
    }

    /// Returns `true` if the response ended before it was whole, or because its client took too
    /// little of it.
    pub(in crate::handover) fn is_cut(&self) -> bool {
        self.is_given_up.get() || !self.is_whole.get()
    }

    /// Its future runs as this task.
    pub(super) fn runs_as(&self, task: AbortHandle) {
        self.task.set(Some(task));
    }

    fn is_waited_for(&self) -> bool {
        self.owed.held() > 0 && !self.is_given_up.get()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.hold_head(0);
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
