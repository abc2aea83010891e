//! HTTP/3 (RFC 9114).
//!
//! quinn brings the connections and h3 reads and writes the frames. What one connection may cost,
//! and for how long it may keep the server waiting, is decided here, as it is for HTTP/2.

mod body;
mod exchange;
mod frames;
mod own;
mod respond;
mod streams;
#[cfg(test)]
#[cfg(feature = "aws-lc-rs")]
mod tests;
mod transport;

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use h3::error::{Code, ConnectionError};
use h3::server::RequestResolver;
use tokio::time::timeout;

use super::body::Part;
use super::requests::Requests;
use crate::app::App;
use crate::drain::Phase;
use crate::event_loop::{Key, Loop, NEVER, Notice, Permit, Tick, tasks, tick_after};
use streams::Streams;
use transport::Connection;

/// Time that a client without streams has to follow a GOAWAY.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(1);
/// A head that is longer than allowed, up to this many times, gets its 431.
const HEADS_READ: usize = 2;

type Resolver = RequestResolver<Connection, Part>;

/// A connection of HTTP/3 on its loop.
pub(crate) struct Quic<A: App> {
    pub(crate) connection: quinn::Connection,
    pub(crate) service: A::Service,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) permit: Permit,
}

/// Serves a connection to its end.
pub(crate) async fn serve<A: App>(home: Rc<Loop<A>>, quic: Quic<A>) {
    let Quic {
        connection,
        service,
        peer,
        permit: _permit,
    } = quic;
    let requests = Requests::new(&home, service, peer, true).of_http3();
    let serving = serve_streams(&home, connection.clone(), Rc::new(requests));
    let served = tokio::select! {
        biased;
        () = home.ended() => return close(&connection, Code::H3_NO_ERROR),
        served = home.within_connection(serving) => served,
    };
    match served {
        Ok(code) => close(&connection, code),
        Err(error) => tracing::debug!(%error, ?peer, "a connection broke"),
    }
}

/// Closes a connection at once.
pub(crate) fn close(connection: &quinn::Connection, code: Code) {
    connection.close(transport::number(code.value()), b"");
}

/// Serves the streams of a connection: the code with which it is to be closed.
async fn serve_streams<A: App>(
    home: &Rc<Loop<A>>,
    connection: quinn::Connection,
    requests: Rc<Requests<A>>,
) -> Result<Code, ConnectionError> {
    let limits = &home.settings.limits;
    let memory = Arc::clone(&home.memory);
    let streams = Streams::new(limits, home.clock(), memory, connection.clone());
    let head_bytes_max = limits.head_bytes_max.saturating_mul(HEADS_READ);
    let transport = Connection::new(connection, Rc::clone(&streams), head_bytes_max);
    let mut watch = Watch::new(home, Rc::clone(&streams));
    let mut builder = h3::server::builder();
    builder
        .max_field_section_size(limits.head_bytes_max as u64)
        .send_grease(false);
    // A client that lets the server open no stream is none of HTTP/3 (RFC 9114, 6.2).
    let built = timeout(limits.head_timeout, builder.build::<_, Part>(transport)).await;
    let Ok(built) = built else {
        return Ok(Code::H3_GENERAL_PROTOCOL_ERROR);
    };
    let mut connection = built?;
    loop {
        let next = {
            let mut accepting = pin!(connection.accept());
            poll_fn(|cx| match watch.look(cx) {
                Verdict::Goes => {
                    let accepted = accepting.as_mut().poll(cx);
                    accepted.map(|accepted| {
                        Next::Stream(accepted.map(|resolver| resolver.map(Box::new)))
                    })
                }
                Verdict::Leaves { more } => Poll::Ready(Next::Leaves { more }),
                Verdict::Ends(code) => Poll::Ready(Next::Ends(code)),
            })
            .await
        };
        match next {
            Next::Stream(accepted) => match accepted? {
                Some(resolver) => begin(home, &requests, &watch, *resolver),
                // The client leaves, and has all that it asked for.
                None => return Ok(Code::H3_NO_ERROR),
            },
            // A client that does not read it learns by the end of the connection.
            Next::Leaves { more } => connection.shutdown(more).await?,
            Next::Ends(code) => return Ok(code),
        }
    }
}

/// The next event of a connection.
enum Next {
    Stream(Result<Option<Box<Resolver>>, ConnectionError>),
    Leaves { more: usize },
    Ends(Code),
}

/// Serves a stream as a task of its own.
fn begin<A: App>(
    home: &Rc<Loop<A>>,
    requests: &Rc<Requests<A>>,
    watch: &Watch<'_, A>,
    resolver: Resolver,
) {
    let Some(stream) = watch.streams.begun() else {
        return;
    };
    if watch.takes_no_more() || stream.is_refused() {
        // The GOAWAY said so: the client asks for it elsewhere.
        return stream.reset_with(Code::H3_REQUEST_REJECTED);
    }
    let serving = exchange::serve(
        Rc::clone(home),
        Rc::clone(requests),
        resolver,
        Rc::clone(&stream),
    );
    let home = Rc::clone(home);
    let task = tasks::spawn(async move { home.within_connection(serving).await });
    stream.runs_as(task.abort_handle());
}

/// The fate of a connection.
enum Verdict {
    Goes,
    /// It says that it takes no streams but those that it has, and so many more.
    Leaves {
        more: usize,
    },
    Ends(Code),
}

/// The progress of a connection that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    No,
    /// Since this tick; streams that are on their way are served.
    Soon(Tick),
    /// Since this tick it takes no more.
    Now(Tick),
}

/// Holds a connection to its time-outs. It waits in the loop's registry as those of HTTP/1.1 do, so
/// that it makes room for a new connection while it is idle.
struct Watch<'a, A: App> {
    home: &'a Rc<Loop<A>>,
    key: Key,
    streams: Rc<Streams>,
    /// The tick since which the first request has been waited for.
    since: Tick,
    leaving: Leaving,
}

impl<'a, A: App> Watch<'a, A> {
    fn new(home: &'a Rc<Loop<A>>, streams: Rc<Streams>) -> Self {
        Self {
            home,
            key: home.registry().add(),
            streams,
            since: home.now(),
            leaving: Leaving::No,
        }
    }

    fn takes_no_more(&self) -> bool {
        matches!(self.leaving, Leaving::Now(_))
    }

    /// Decides, and if it goes on waits for what is due next.
    fn look(&mut self, cx: &Context<'_>) -> Verdict {
        let notice = self.home.registry().notice(self.key, cx);
        self.streams.tell(cx.waker());
        let now = self.home.now();
        if self.streams.has_faults_too_many() || self.streams.give_up_slow() {
            return Verdict::Ends(Code::H3_EXCESSIVE_LOAD);
        }
        if let Some(more) = self.leave(notice, now) {
            return Verdict::Leaves { more };
        }
        let idle_since = self.streams.idle_since();
        let leave_due = self.leave_due(idle_since);
        if self.takes_no_more() && leave_due <= now {
            return Verdict::Ends(Code::H3_NO_ERROR);
        }
        let (idle_due, idle_since) = match self.leaving {
            Leaving::No => (self.idle_due(idle_since), idle_since),
            Leaving::Soon(_) | Leaving::Now(_) => (leave_due, None),
        };
        let due = idle_due.min(self.streams.taken_until());
        self.home.registry().wait(self.key, due, idle_since, now);
        Verdict::Goes
    }

    /// Takes the next step of leaving, if it is time for it: how many more streams are taken, by
    /// h3's count, which begins with the last that came.
    fn leave(&mut self, notice: Notice, now: Tick) -> Option<usize> {
        let idle_since = self.streams.idle_since();
        let is_drained = self.home.phase() != Phase::Serving;
        let leaves = match self.leaving {
            Leaving::No if is_drained => {
                self.leaving = Leaving::Soon(now);
                // h3 counts from the last stream that came. Without one it could only say that
                // none will be served, and the first request may be on its way.
                if !self.streams.has_begun() {
                    return None;
                }
                let more = self.home.settings.limits.streams_max as usize + 1;
                self.streams.leave_after(more);
                return Some(more);
            }
            Leaving::No => {
                let is_evicted = notice.evicted && idle_since.is_some();
                is_evicted || self.idle_due(idle_since) <= now
            }
            Leaving::Soon(_) => self.leave_due(idle_since) <= now,
            Leaving::Now(_) => false,
        };
        if !leaves {
            return None;
        }
        self.leaving = Leaving::Now(now);
        Some(1)
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

    /// Returns the tick at which a connection that leaves takes the next step.
    fn leave_due(&self, idle_since: Option<Tick>) -> Tick {
        let grace = self.home.settings.limits.drain_grace;
        match (self.leaving, idle_since) {
            (Leaving::Soon(since), _) => tick_after(since, grace),
            (Leaving::Now(since), Some(idle)) => tick_after(since.max(idle), LEAVE_TIMEOUT),
            _ => NEVER,
        }
    }
}

impl<A: App> Drop for Watch<'_, A> {
    fn drop(&mut self) {
        self.home.registry().remove(self.key);
    }
}
