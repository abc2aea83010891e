//! HTTP/2 with prior knowledge.
//!
//! hyper and its `h2` read and write the frames. What one connection may cost, and for how long it
//! may keep the server waiting, is decided here, once each time that the connection was polled.

mod frames;
mod input;
mod io;
mod leave;
mod owed;
mod seen;
mod streams;
mod turns;

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hyper::server::conn::http2::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};

use super::io::Rewound;
use super::requests::Requests;
use crate::app::App;
use crate::connection::LINGER;
use crate::drain::Phase;
use crate::event_loop::{Key, Loop, NEVER, Notice, Permit, Tick, tick_after};
use input::{INPUT_BYTES_MAX, Input, STREAM_INPUT_BYTES_MAX};
use io::{Left, Noted};
use leave::{Patience, take_leave};
use owed::Obstacle;
#[cfg(feature = "http3")]
pub(super) use owed::Owed;
use seen::Seen;
use streams::STREAM_BYTES_MAX;
pub(super) use streams::{Stream, Streams};
use turns::Turns;

/// The longest time for hyper's timers, which do not take any duration: a year.
const IDLE_MAX: Duration = Duration::from_hours(365 * 24);
/// Time that a client may leave a ping without a reply.
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// Streams that a client may have opened and reset before the server came to see them; with more at
/// a time, as a rapid reset has, the connection ends.
const RESET_UNSEEN_MAX: usize = 20;
/// Streams that may have been reset for faults of the client before its connection ends.
const FAULTS_MAX: usize = 1_024;
/// Time that a client without streams has to follow a GOAWAY.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(1);
/// Time after which to look again at a head that took too long while it was not read.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves an HTTP/2 connection, whose first request has been waited for since `since`, and takes
/// leave of its client.
pub(super) async fn serve<A: App>(
    home: &Rc<Loop<A>>,
    io: Rewound,
    requests: Requests<A>,
    since: Tick,
    takes_websockets: bool,
    _permit: Permit,
) -> hyper::Result<()> {
    let limits = &home.settings.limits;
    let left = Rc::default();
    let ended = serve_streams(home, io, requests, since, takes_websockets, &left).await?;
    let patience = match ended {
        Ended::InOrder { sent_at } => Patience {
            pause: LINGER,
            time: limits
                .write_timeout
                .saturating_sub(home.age(sent_at))
                .max(LINGER),
        },
        Ended::Unheard => Patience {
            pause: LINGER,
            time: LINGER,
        },
        // Somebody waits for its descriptor.
        Ended::Evicted => Patience::default(),
        Ended::AtOnce => return Ok(()),
    };
    if let Some(io) = left.take() {
        let turns = Turns::new(Rc::clone(&home.bulk), home.clock());
        take_leave(io, turns, patience, limits.untaken_max()).await;
    }
    Ok(())
}

/// Serves the streams of a connection, whose socket is `left` behind.
async fn serve_streams<A: App>(
    home: &Rc<Loop<A>>,
    io: Rewound,
    requests: Requests<A>,
    since: Tick,
    takes_websockets: bool,
    left: &Rc<Left>,
) -> hyper::Result<Ended> {
    let limits = &home.settings.limits;
    let streams = Streams::new(limits, home.clock());
    let seen = Seen::new();
    let input = Input::new(Rc::clone(&seen), Arc::clone(&home.memory));
    let turns = Turns::new(Rc::clone(&home.bulk), home.clock());
    let of_io = (Rc::clone(&seen), Rc::clone(&input), Rc::clone(left));
    let io = Noted::new(io, turns, home.clock(), of_io);
    let requests = requests.of_streams(Rc::clone(&streams), input.intake());
    let mut watch = Watch::new(home, Rc::clone(&streams), seen, input, since);
    let mut builder = Builder::new(LocalExecutor {
        home: Rc::clone(home),
        streams: Rc::clone(&streams),
    });
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams_max)
        .max_pending_accept_reset_streams(RESET_UNSEEN_MAX)
        .max_local_error_reset_streams(FAULTS_MAX)
        .max_send_buf_size(STREAM_BYTES_MAX)
        .initial_connection_window_size(INPUT_BYTES_MAX)
        .initial_stream_window_size(STREAM_INPUT_BYTES_MAX)
        .max_header_list_size(u32::try_from(limits.head_bytes_max).unwrap_or(u32::MAX))
        .keep_alive_interval(limits.keep_alive_timeout.min(IDLE_MAX))
        .keep_alive_timeout(PING_TIMEOUT);
    if takes_websockets {
        builder.enable_connect_protocol();
    }
    let mut connection = pin!(builder.serve_connection(TokioIo::new(io), requests));
    poll_fn(|cx| {
        let notice = home.registry().notice(watch.key, cx);
        streams.tell(cx.waker());
        watch.input.tell(cx.waker());
        loop {
            if let Poll::Ready(served) = connection.as_mut().poll(cx) {
                return Poll::Ready(served.map(|()| watch.ended()));
            }
            match watch.look(notice) {
                Verdict::Goes => return Poll::Pending,
                // Polled again at once: it is the next poll that writes the GOAWAY.
                Verdict::Leaves => connection.as_mut().graceful_shutdown(),
                Verdict::Ends(ended) => return Poll::Ready(Ok(ended)),
            }
        }
    })
    .await
}

/// The fate of a connection.
enum Verdict {
    Goes,
    /// It takes no more streams, and ends when those that are open have.
    Leaves,
    Ends(Ended),
}

/// The end of a connection that did not fail.
enum Ended {
    /// The last part of a response may be on its way to the client, or wait for it to read.
    InOrder { sent_at: Tick },
    /// Its client took too long over a head, or never sent a whole one.
    Unheard,
    /// It made room for another.
    Evicted,
    /// Its client is told nothing more.
    AtOnce,
}

/// Holds a connection to its time-outs. It waits in the loop's registry as those of HTTP/1.1 do, so
/// that it makes room for a new connection while it is idle.
struct Watch<'a, A: App> {
    home: &'a Rc<Loop<A>>,
    key: Key,
    streams: Rc<Streams>,
    seen: Rc<Seen>,
    input: Rc<Input>,
    /// The tick since which the first request has been waited for.
    since: Tick,
    leaving_since: Option<Tick>,
    is_evicted: bool,
}

impl<'a, A: App> Watch<'a, A> {
    fn new(
        home: &'a Rc<Loop<A>>,
        streams: Rc<Streams>,
        seen: Rc<Seen>,
        input: Rc<Input>,
        since: Tick,
    ) -> Self {
        let key = home.registry().add();
        Self {
            home,
            key,
            streams,
            seen,
            input,
            since,
            leaving_since: None,
            is_evicted: false,
        }
    }

    fn ended(&self) -> Ended {
        if self.is_evicted {
            Ended::Evicted
        } else if self.streams.has_begun() {
            Ended::InOrder {
                sent_at: self.streams.taken_at(),
            }
        } else {
            Ended::Unheard
        }
    }

    /// Decides, and if it goes on waits for what is due next.
    fn look(&mut self, notice: Notice) -> Verdict {
        let now = self.home.now();
        self.streams.settle(self.obstacle());
        self.input.note_held(self.streams.held());
        if self.is_heard() && self.head_due() <= now {
            tracing::debug!("a head over HTTP/2 is too slow; closing its connection");
            return Verdict::Ends(if self.is_evicted {
                Ended::Evicted
            } else {
                Ended::Unheard
            });
        }
        if self.input.has_head_too_many() {
            self.home.meter.count_declined("memory");
            return Verdict::Ends(Ended::AtOnce);
        }
        let is_slow = self.streams.give_up_slow();
        let idle_since = self.streams.idle_since();
        if self.leaving_since.is_none() {
            let is_evicted = notice.evicted && idle_since.is_some();
            let is_drained = self.home.phase() != Phase::Serving;
            if is_slow || is_evicted || is_drained || self.idle_due(idle_since) <= now {
                self.leaving_since = Some(now);
                self.is_evicted = is_evicted;
                return Verdict::Leaves;
            }
        }
        if self.leave_due(idle_since) <= now {
            return Verdict::Ends(self.ended());
        }
        self.wait(idle_since, now);
        Verdict::Goes
    }

    fn wait(&self, idle_since: Option<Tick>, now: Tick) {
        let head_due = match self.head_due() {
            due if due <= now => tick_after(now, BUSY_TIMEOUT),
            due => due,
        };
        let (idle_due, idle_since) = match self.leaving_since {
            Some(_) => (self.leave_due(idle_since), None),
            None => (self.idle_due(idle_since), idle_since),
        };
        let read_due = if self.input.is_paused() {
            now + 1
        } else {
            NEVER
        };
        let taken_until = self.streams.taken_until();
        let due = head_due.min(taken_until).min(idle_due).min(read_due);
        self.home.registry().wait(self.key, due, idle_since, now);
    }

    /// Returns what unsent responses wait for.
    fn obstacle(&self) -> Obstacle {
        if !self.is_heard() {
            Obstacle::Server
        } else if self.seen.window() == 0 {
            Obstacle::ConnectionWindow
        } else {
            Obstacle::StreamWindow
        }
    }

    /// Returns `true` if all that the client sent was read: it is not while there is something to
    /// be sent that the system does not take, or no memory, or before its turn.
    fn is_heard(&self) -> bool {
        let has_read = !self.seen.waits_for_turn.get();
        has_read && self.seen.is_flushed.get() && !self.input.is_paused()
    }

    /// Returns the tick by which something that the client has begun must be whole.
    fn head_due(&self) -> Tick {
        let since = self.seen.from_client.borrow().unfinished_since();
        let time = self.home.settings.limits.head_timeout;
        since.map_or(NEVER, |since| tick_after(since, time))
    }

    /// Returns the tick by which the next request must have come.
    fn idle_due(&self, idle_since: Option<Tick>) -> Tick {
        let limits = &self.home.settings.limits;
        match idle_since {
            None => NEVER,
            Some(_) if !self.streams.has_begun() => tick_after(self.since, limits.head_timeout),
            Some(since) => tick_after(since, limits.keep_alive_timeout),
        }
    }

    /// Returns the tick by which a client that got a GOAWAY must have left. While the system does
    /// not take all that is to be sent, it is first of all the socket that gives up the client.
    fn leave_due(&self, idle_since: Option<Tick>) -> Tick {
        let (Some(leaving), Some(idle)) = (self.leaving_since, idle_since) else {
            return NEVER;
        };
        let time = if self.seen.is_flushed.get() {
            LEAVE_TIMEOUT
        } else {
            self.home.settings.limits.untaken_max()
        };
        tick_after(leaving.max(idle), time)
    }
}

impl<A: App> Drop for Watch<'_, A> {
    fn drop(&mut self) {
        self.home.registry().remove(self.key);
    }
}

/// Runs hyper's futures on the loop that serves the connection.
struct LocalExecutor<A: App> {
    home: Rc<Loop<A>>,
    streams: Rc<Streams>,
}

impl<A: App> Clone for LocalExecutor<A> {
    fn clone(&self) -> Self {
        Self {
            home: Rc::clone(&self.home),
            streams: Rc::clone(&self.streams),
        }
    }
}

impl<A: App, F: Future + 'static> hyper::rt::Executor<F> for LocalExecutor<A> {
    fn execute(&self, future: F) {
        let home = Rc::clone(&self.home);
        let running = self.streams.run();
        let stream = running.stream();
        let task = tokio::task::spawn_local(async move {
            let _running = running;
            home.within_connection(future).await;
        });
        if let Some(stream) = stream {
            stream.runs_as(task.abort_handle());
        }
    }
}
