//! HTTP/2 (RFC 9113).

mod exchange;

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use h2::client::{Builder, Connection, SendRequest};
use tokio::time::timeout;

use super::connect::{Duplex, Failure, Transport};
use super::connection::Use;
use super::dispatcher::Ticket;
use super::engine::{Engine, Slot};
use super::exchange::Exchange;
use crate::record::FailureKind;

/// The receive window of a stream: 1 MiB. Data is dropped at once, so the window bounds not memory
/// but the pace of big bodies.
const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
/// The receive window of a connection: 16 MiB.
const CONNECTION_WINDOW_BYTES: u32 = 16 * 1024 * 1024;
/// Largest head of a response: 256 KiB.
const HEAD_BYTES_MAX: u32 = 256 * 1024;
/// Streams before the server's SETTINGS arrive.
const STREAMS_BEFORE_SETTINGS: usize = 1;
/// The time that a connection has to close after GOAWAY.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A connection that speaks HTTP/2.
pub(super) struct Line {
    send: SendRequest<Bytes>,
    driver: Driver,
    tls: Option<String>,
    is_tls: bool,
}

type Driver = Connection<Box<dyn Duplex>, Bytes>;

/// The state that the requests of a connection share.
struct Talk<'a> {
    engine: &'a Engine,
    tls: Option<String>,
    is_tls: bool,
    /// True if the server has responded at all.
    is_proven: Cell<bool>,
    /// True if the server does not speak HTTP/2.
    is_refused: Cell<bool>,
    /// The number of signs of life: heads and data of responses, and resets.
    heard: Cell<u64>,
    /// True if a request timed out without any since it was sent.
    is_silent: Cell<bool>,
}

/// Opens HTTP/2 on a connection: by ALPN over TLS, with prior knowledge else.
pub(super) async fn open(transport: Transport) -> Result<Line, Failure> {
    let is_tls = transport.tls.is_some();
    let tls = match transport.tls {
        Some(agreed) if agreed.protocol.as_deref() != Some(b"h2") => {
            let detail = "the server did not choose h2 (ALPN)";
            return Err(Failure::new(FailureKind::Handshake, detail));
        }
        agreed => agreed.and_then(|agreed| agreed.description),
    };
    let (send, driver) = Builder::new()
        .initial_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_header_list_size(HEAD_BYTES_MAX)
        .initial_max_send_streams(STREAMS_BEFORE_SETTINGS)
        .enable_push(false)
        .handshake(transport.stream)
        .await
        .map_err(|error| Failure::new(FailureKind::Handshake, error))?;
    Ok(Line {
        send,
        driver,
        tls,
        is_tls,
    })
}

/// Sends requests on a connection until there are no more, or it ends, or is found to be silent.
pub(super) async fn serve(engine: &Rc<Engine>, line: Line, first: Exchange) -> Use {
    let talk = Talk::new(engine, line.tls, line.is_tls);
    let mut send = line.send;
    let watched = send.clone();
    let mut driver = pin!(line.driver);
    let mut is_open = true;
    let keep_alive = engine.share.plan.keep_alive;
    let mut slot = keep_alive.then(|| Slot::enter(engine, first.endpoint));
    let mut in_flight = FuturesUnordered::new();
    in_flight.push(talk.exchange(&mut send, first));
    while slot.is_some() || !in_flight.is_empty() {
        let streams = in_flight.len();
        let next = poll_fn(|context| match &slot {
            Some(slot) => poll_next(slot, &mut send, streams, engine, context),
            None => Poll::Pending,
        });
        tokio::select! {
            biased;
            ticket = next => match ticket {
                Some(ticket) => in_flight.push(talk.exchange(&mut send, engine.begin(&ticket))),
                None => slot = None,
            },
            // Of requests under way some may still have their responses, so they are waited for.
            Some(()) = in_flight.next() => slot = slot.filter(|_| !talk.is_silent.get()),
            event = drive(driver.as_mut(), &watched), if is_open => {
                is_open = event == Event::StreamsChanged;
                slot = slot.filter(|_| is_open);
            }
        }
    }
    drop((in_flight, send, watched));
    if is_open && !talk.is_silent.get() {
        // With the last handle gone the connection sends GOAWAY, and ends.
        let _ = timeout(CLOSE_TIMEOUT, driver).await;
    }
    talk.used()
}

/// Polls the next request, when the connection can take one; `None` when it takes no more.
fn poll_next(
    slot: &Slot,
    send: &mut SendRequest<Bytes>,
    streams: usize,
    engine: &Engine,
    context: &mut Context<'_>,
) -> Poll<Option<Ticket>> {
    match send.poll_ready(context) {
        Poll::Ready(Ok(())) => {}
        Poll::Pending if streams > 0 => return Poll::Pending,
        // The server sent GOAWAY, or it allows no stream, or all stream numbers were used.
        Poll::Pending | Poll::Ready(Err(_)) => return Poll::Ready(None),
    }
    let allowed = engine.share.plan.in_flight_max as usize;
    match send.current_max_send_streams().min(allowed).max(1) {
        // The connection's task is woken when the server allows more.
        limit if limit <= streams => Poll::Pending,
        limit => slot.poll_ticket(context, limit - streams),
    }
}

/// A change of a connection's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Ended,
    /// The server allows more or fewer streams.
    StreamsChanged,
}

/// Reads and writes; returns when the connection's state changes.
async fn drive(mut driver: Pin<&mut Driver>, watched: &SendRequest<Bytes>) -> Event {
    let before = watched.current_max_send_streams();
    poll_fn(|context| match driver.as_mut().poll(context) {
        Poll::Ready(_) => Poll::Ready(Event::Ended),
        Poll::Pending if watched.current_max_send_streams() != before => {
            Poll::Ready(Event::StreamsChanged)
        }
        Poll::Pending => Poll::Pending,
    })
    .await
}

impl<'a> Talk<'a> {
    fn new(engine: &'a Engine, tls: Option<String>, is_tls: bool) -> Self {
        Self {
            engine,
            tls,
            is_tls,
            is_proven: Cell::new(false),
            is_refused: Cell::new(false),
            heard: Cell::new(0),
            is_silent: Cell::new(false),
        }
    }

    fn used(&self) -> Use {
        if self.is_refused.get() {
            Use::Refused
        } else {
            Use::Opened
        }
    }

    fn hear(&self) {
        self.heard.update(|heard| heard + 1);
    }

    fn proven(&self) {
        if !self.is_proven.replace(true) {
            self.engine.outcomes.borrow_mut().proven();
        }
    }
}
