//! Connections that hyper serves: HTTP/2 with prior knowledge, and requests to upgrade.
//!
//! They keep our limits, count as connections of their loop, and take part in its drain.

mod io;
mod ledger;
mod length;
mod requests;
mod tunnel;
mod websocket;

use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::time::{Instant, sleep_until};

pub(crate) use ledger::Ledger;

use crate::app::App;
use crate::connection::Socket;
use crate::drain::Phase;
use crate::event_loop::{Loop, Seat};
use crate::request_handle::Line;
use io::Rewound;
use requests::Requests;
use tunnel::Tunnel;

/// Streams that a client may have open at once on one HTTP/2 connection.
const STREAMS_MAX: u32 = 128;
/// What "for ever" means for an HTTP/2 connection, whose timers do not take any duration: a year.
const IDLE_MAX: Duration = Duration::from_hours(365 * 24);
/// How long an HTTP/2 client may leave a ping unanswered.
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// A connection that another server than ours takes over.
pub(crate) struct Handed<A: App> {
    pub(crate) socket: Socket,
    /// Answers to earlier requests that were not sent yet.
    pub(crate) unsent: Vec<u8>,
    /// What was read and is the other's to read.
    pub(crate) input: Bytes,
    pub(crate) protocol: Protocol,
    pub(crate) service: A::Service,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) seat: Seat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http2,
    Upgrade,
}

/// Serves a connection that was handed over, to its end.
pub(crate) async fn serve<A: App>(home: Rc<Loop<A>>, handed: Handed<A>) {
    let peer = handed.peer;
    let requests = Requests::new(&home, handed.service, peer);
    let write_timeout = home.settings.limits.write_timeout;
    let io = Rewound::new(handed.socket, handed.unsent, handed.input, write_timeout);
    let serving = async {
        match handed.protocol {
            Protocol::Http2 => serve_http2(&home, io, requests, handed.seat).await,
            Protocol::Upgrade => serve_upgrade(&home, io, requests, handed.seat).await,
        }
    };
    let served = tokio::select! {
        biased;
        () = home.ended() => return,
        served = home.within_connection(serving) => served,
    };
    if let Err(error) = served {
        tracing::debug!(%error, ?peer, "a connection broke");
    }
}

async fn serve_http2<A: App>(
    home: &Rc<Loop<A>>,
    io: Rewound,
    requests: Requests<A>,
    _seat: Seat,
) -> hyper::Result<()> {
    let limits = &home.settings.limits;
    let idle_max = limits.keep_alive_timeout.min(IDLE_MAX);
    let mut builder = http2::Builder::new(LocalExecutor(Rc::clone(home)));
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .enable_connect_protocol()
        .max_header_list_size(u32::try_from(limits.head_bytes_max).unwrap_or(u32::MAX))
        .keep_alive_interval(idle_max)
        .keep_alive_timeout(PING_TIMEOUT);
    let active = requests.active();
    let mut connection = pin!(builder.serve_connection(TokioIo::new(io), requests));
    let mut told = home.told.clone();
    let mut leaving = false;
    loop {
        let idle_since = active.idle_since();
        let idle_until = idle_since.unwrap_or_else(Instant::now) + idle_max;
        tokio::select! {
            served = connection.as_mut() => return served,
            _ = told.wait_for(|phase| *phase != Phase::Serving), if !leaving => {
                leaving = true;
                connection.as_mut().graceful_shutdown();
            }
            () = sleep_until(idle_until), if !leaving => {
                if idle_since.is_some() && active.idle_since() == idle_since {
                    leaving = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }
}

/// Serves one request, which may turn the connection into a tunnel. It is not kept otherwise: a
/// second request would be read by another parser than ours.
async fn serve_upgrade<A: App>(
    home: &Rc<Loop<A>>,
    io: Rewound,
    requests: Requests<A>,
    seat: Seat,
) -> hyper::Result<()> {
    let entry = home
        .ledger
        .enter("an upgraded connection".to_owned(), requests.peer());
    let entry = Arc::new(entry);
    let line = Line::new(home.tell_handlers.subscribe(), false);
    let guard = (seat, Arc::clone(&entry));
    let tunnel = Tunnel::new(io, home.told.clone(), Arc::clone(&line), guard);
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .max_headers(home.settings.limits.fields_max)
        .half_close(home.settings.half_close);
    let requests = requests.of_tunnel(entry, line);
    builder
        .serve_connection(TokioIo::new(tunnel), requests)
        .with_upgrades()
        .await
}

/// Runs hyper's futures on the loop that serves the connection.
struct LocalExecutor<A: App>(Rc<Loop<A>>);

impl<A: App> Clone for LocalExecutor<A> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<A: App, F: Future + 'static> hyper::rt::Executor<F> for LocalExecutor<A> {
    fn execute(&self, future: F) {
        let home = Rc::clone(&self.0);
        tokio::task::spawn_local(async move {
            home.within_connection(future).await;
        });
    }
}
