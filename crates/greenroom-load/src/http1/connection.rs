//! One connection and the requests in flight on it.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};

use super::malformed::Malformed;
use super::requests::Requests;
use super::response::{Complete, Reader};
use super::transport::Transport;

/// Requests that one write takes.
const SLICES_MAX: usize = 64;

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) transport: Transport,
    pub(super) group: usize,
    phase: Phase,
    /// The events that epoll is registered for.
    pub(super) interest: Interest,
    /// The time at which connecting began.
    begun: u64,
    /// The duration of connecting, until a response takes it.
    connect: Option<u64>,
    /// Requests without a response, the oldest first.
    flights: VecDeque<Flight>,
    /// The number of newest requests that are not wholly sent.
    unsent: usize,
    /// Bytes sent of the first unsent request.
    offset: usize,
    pub(super) reader: Reader,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Connecting, then shaking hands, until the first request is sent.
    Opening,
    Open,
    /// Sending is over; a response may still come.
    Closing,
    /// Every request has its response and the server has announced that it closes.
    ///
    /// The side that closes first keeps the port for a minute (`TIME_WAIT`), so that is left to the
    /// server, as ab does.
    Lingering {
        /// The begin, in nanoseconds since the run began.
        since: u64,
    },
}

/// Events that a connection waits for, the fewest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Interest {
    None,
    Read,
    ReadAndWrite,
}

/// A request in flight. Times in nanoseconds since the run began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    /// Number of the request.
    pub(super) request: usize,
    pub(super) intended: u64,
    /// The time at which sending, or connecting for it, began.
    pub(super) begun: u64,
    pub(super) sent: u64,
    /// The time of the response's first byte; 0 before.
    pub(super) first_byte: u64,
}

/// The response to the oldest request.
#[derive(Debug)]
pub(super) struct Responded {
    pub(super) flight: Flight,
    pub(super) response: Complete,
    pub(super) connect: Option<u64>,
    /// True if the connection may serve another request.
    pub(super) is_reusable: bool,
}

impl Responded {
    /// Returns true if the server has announced that it closes the connection.
    pub(super) fn server_closes(&self) -> bool {
        !self.response.keep_alive
    }
}

impl Connection {
    pub(super) fn new(transport: Transport, group: usize, begun: u64) -> Self {
        Self {
            transport,
            group,
            phase: Phase::Opening,
            interest: Interest::None,
            begun,
            connect: None,
            // Without pipelining there is never more than one.
            flights: VecDeque::with_capacity(1),
            unsent: 0,
            offset: 0,
            reader: Reader::default(),
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    pub(super) fn flights(&self) -> &VecDeque<Flight> {
        &self.flights
    }

    /// Records the duration of connecting, if that is over.
    pub(super) fn note_connected(&mut self, now: u64) {
        if self.transport.is_ready() {
            self.connect = Some(now.saturating_sub(self.begun));
        }
    }

    /// Leaves the closing to the server.
    pub(super) fn linger(&mut self, now: u64) {
        // A response may come before its request is wholly sent; the rest stays unsent.
        self.unsent = 0;
        self.offset = 0;
        self.phase = Phase::Lingering { since: now };
    }

    /// Queues a request; [`Connection::advance`] sends it.
    pub(super) fn push(&mut self, flight: Flight) {
        self.flights.push_back(flight);
        self.unsent += 1;
    }

    /// Returns true if bytes wait for space in the socket.
    pub(super) fn has_unsent(&self) -> bool {
        let sends = matches!(self.phase, Phase::Opening | Phase::Open);
        sends && (self.unsent > 0 || self.transport.wants_write())
    }

    /// Returns true if it can take another request.
    pub(super) fn can_take_request(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Connects, shakes hands and sends as far as possible now; returns the bytes of requests that
    /// were sent.
    pub(super) fn advance(
        &mut self,
        requests: &Requests,
        now: &mut dyn FnMut() -> u64,
    ) -> io::Result<usize> {
        if self.phase == Phase::Opening {
            match self.transport.handshake() {
                Ok(true) => {}
                Ok(false) => return Ok(0),
                Err(error) if is_not_yet(&error) => return Ok(0),
                Err(error) => return Err(error),
            }
        }
        // Read after the handshake, which is not to count as the server's time.
        let now = now();
        let sent = self.send(requests)?;
        if self.phase == Phase::Opening && sent > 0 {
            self.phase = Phase::Open;
            let connect = now.saturating_sub(self.begun);
            self.connect.get_or_insert(connect);
            for flight in &mut self.flights {
                flight.sent = now;
            }
        }
        Ok(sent)
    }

    fn send(&mut self, requests: &Requests) -> io::Result<usize> {
        let mut total = 0;
        while self.has_unsent() {
            match self.send_once(requests) {
                Ok(sent) => {
                    total += sent;
                    self.note_sent(requests, sent);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if self.phase == Phase::Opening && is_not_yet(&error) => break,
                // The peer may have responded before it stopped to read: its bytes are read first.
                Err(_) if self.phase == Phase::Open => {
                    self.phase = Phase::Closing;
                    self.unsent = 0;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(total)
    }

    fn send_once(&mut self, requests: &Requests) -> io::Result<usize> {
        if self.transport.wants_write() {
            self.transport.flush()?;
        }
        if self.unsent == 0 {
            return Ok(0);
        }
        let first = self.flights.len() - self.unsent;
        let begin = requests.bytes(self.flights[first].request);
        let begin = &begin[self.offset..];
        // The common case takes no allocation.
        if self.unsent == 1 {
            return self.transport.send(&[IoSlice::new(begin)]);
        }
        let rest = self.flights.range(first + 1..).take(SLICES_MAX - 1);
        let rest: Vec<_> = rest.map(|flight| requests.bytes(flight.request)).collect();
        let mut slices = Vec::with_capacity(1 + rest.len());
        slices.push(IoSlice::new(begin));
        slices.extend(rest.iter().map(|bytes| IoSlice::new(bytes)));
        self.transport.send(&slices)
    }

    fn note_sent(&mut self, requests: &Requests, sent: usize) {
        let mut sent = sent + self.offset;
        while self.unsent > 0 {
            let index = self.flights.len() - self.unsent;
            let length = requests.length(self.flights[index].request);
            if sent < length {
                break;
            }
            sent -= length;
            self.unsent -= 1;
        }
        self.offset = sent;
    }

    /// Parses bytes that came for the oldest request; returns the number of bytes used, and the
    /// response that they complete.
    pub(super) fn take(
        &mut self,
        input: &[u8],
        now: u64,
        to_head: bool,
    ) -> Result<(usize, Option<Responded>), Malformed> {
        if let Some(flight) = self.flights.front_mut()
            && flight.first_byte == 0
        {
            flight.first_byte = now;
        }
        let (used, complete) = self.reader.feed(input, to_head)?;
        Ok((used, complete.and_then(|response| self.responded(response))))
    }

    /// Returns the response that ends with the connection.
    pub(super) fn end(&mut self) -> Option<Responded> {
        let response = self.reader.end()?;
        self.responded(response)
    }

    fn responded(&mut self, response: Complete) -> Option<Responded> {
        // A server that responds before it has the whole request may never read the rest.
        let was_sent = self.unsent < self.flights.len();
        let flight = self.flights.pop_front()?;
        let is_reusable = response.keep_alive && was_sent && self.phase == Phase::Open;
        Some(Responded {
            flight,
            response,
            connect: self.connect.take(),
            is_reusable,
        })
    }
}

/// True for the error of a send or a handshake before the connection is established.
fn is_not_yet(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::NotConnected
    )
}
