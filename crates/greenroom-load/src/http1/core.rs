//! The connections of a thread and their epoll instance.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use slab::Slab;

use super::connection::{Answered, Connection, Flight, Interest, Phase};
use super::groups::Groups;
use super::transport::Transport;
use crate::record::{Answer, FailureKind, Recorder};
use crate::run::{Clock, Share};

/// Events taken from the kernel at once.
const EVENTS_MAX: usize = 512;
/// Bytes read at once.
const INPUT_BYTES: usize = 64 * 1024;
/// How long a server that has said so may take to close a connection: 1 s.
const LINGER_NS_MAX: u64 = 1_000_000_000;
/// Failures to connect in a row, without any success, after which a run is given up (as ab does).
const CONNECT_FAILURES_MAX: u32 = 10;

/// Connections, and what becomes of the requests on them.
pub(super) struct Core {
    pub(super) clock: Clock,
    pub(super) groups: Groups,
    pub(super) recorder: Recorder,
    epoll: OwnedFd,
    connections: Slab<Connection>,
    events: Vec<epoll::Event>,
    input: Vec<u8>,
    sources: Vec<IpAddr>,
    next_source: usize,
    window_bytes: Option<usize>,
    timeout_ns: u64,
    keep_alive: bool,
    answers_head: bool,
    ever_connected: bool,
    connect_failures: u32,
    /// When the last request ended.
    last_ns: u64,
}

/// What an event meant for whoever sends requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happened {
    Nothing,
    /// The connection can take another request.
    Room(usize),
    /// A connection of this group is gone.
    Gone {
        group: usize,
        /// It was never established.
        unconnected: bool,
    },
}

impl Core {
    pub(super) fn new(share: &Share, groups: Groups, recorder: Recorder) -> io::Result<Self> {
        let plan = &share.plan;
        Ok(Self {
            clock: share.clock,
            groups,
            recorder,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            connections: Slab::new(),
            events: Vec::with_capacity(EVENTS_MAX),
            input: vec![0; INPUT_BYTES],
            sources: plan.sources.clone(),
            next_source: usize::try_from(share.index).unwrap_or(0),
            window_bytes: plan.window_bytes,
            timeout_ns: u64::try_from(plan.timeout.as_nanos()).unwrap_or(u64::MAX),
            keep_alive: plan.keep_alive,
            answers_head: plan.request.method == "HEAD",
            ever_connected: false,
            connect_failures: 0,
            last_ns: 0,
        })
    }

    /// Connections that are open or being opened.
    pub(super) fn open_connections(&self) -> usize {
        self.connections.len()
    }

    /// Requests without an answer.
    pub(super) fn under_way(&self) -> usize {
        let flights = |(_, connection): (usize, &Connection)| connection.flights().len();
        self.connections.iter().map(flights).sum()
    }

    /// Requests under way on a connection.
    pub(super) fn flights(&self, key: usize) -> usize {
        self.connections[key].flights().len()
    }

    /// Whether a connection of this group waits for a request.
    pub(super) fn is_idle(&self, key: usize, group: usize) -> bool {
        let connection = self.connections.get(key);
        connection
            .is_some_and(|connection| connection.group == group && connection.flights().is_empty())
    }

    pub(super) fn group_of(&self, key: usize) -> usize {
        self.connections[key].group
    }

    pub(super) fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// Whether nothing was ever reached, and that often enough.
    pub(super) fn is_hopeless(&self) -> bool {
        !self.ever_connected && self.connect_failures >= CONNECT_FAILURES_MAX
    }

    /// Waits for events at most so long; how many there are.
    pub(super) fn wait(&mut self, timeout: Duration) -> io::Result<usize> {
        self.events.clear();
        let timeout = Timespec {
            tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        match epoll::wait(
            &self.epoll,
            spare_capacity(&mut self.events),
            Some(&timeout),
        ) {
            Ok(count) => Ok(count),
            Err(Errno::INTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Connects for a request that was intended for a time; the new connection's key.
    /// `None` when that failed at once, which is noted.
    pub(super) fn open(&mut self, group: usize, intended: u64, now: u64) -> Option<usize> {
        let flight = self.flight(group, intended, now);
        let source = self.source();
        let endpoint = self.groups.endpoint(group);
        let opened = Transport::connect(endpoint, source, self.window_bytes);
        let opened = opened.map(|transport| {
            let mut connection = Connection::new(transport, group, now);
            connection.push(flight);
            connection
        });
        match opened {
            Ok(mut connection) => {
                connection.note_connected(self.clock.now());
                Some(self.connections.insert(connection))
            }
            Err(error) => {
                self.connect_failed();
                self.note_failure(&flight, FailureKind::of_connect(&error), &error);
                None
            }
        }
    }

    /// Asks for the events that a connection waits for.
    ///
    /// Only after its first attempt to send: on a fast network that succeeds right behind `connect`, and there is nothing to
    /// wait for but the answer.
    fn watch(&mut self, key: usize) -> io::Result<()> {
        let connection = &mut self.connections[key];
        let wanted = if connection.has_unsent() {
            Interest::ReadAndWrite
        } else {
            Interest::Read
        };
        if connection.interest >= wanted {
            return Ok(());
        }
        let mut flags = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        if wanted == Interest::ReadAndWrite {
            flags |= epoll::EventFlags::OUT;
        }
        let data = epoll::EventData::new_u64(key as u64);
        if connection.interest == Interest::None {
            epoll::add(&self.epoll, &connection.transport, data, flags)?;
        } else {
            epoll::modify(&self.epoll, &connection.transport, data, flags)?;
        }
        connection.interest = wanted;
        Ok(())
    }

    fn source(&mut self) -> Option<IpAddr> {
        let source = self
            .sources
            .get(self.next_source % self.sources.len().max(1));
        self.next_source = self.next_source.wrapping_add(1);
        source.copied()
    }

    /// Queues another request on a connection; [`Core::send`] sends it.
    pub(super) fn push(&mut self, key: usize, intended: u64, now: u64) {
        let flight = self.flight(self.connections[key].group, intended, now);
        self.connections[key].push(flight);
    }

    fn flight(&mut self, group: usize, intended: u64, now: u64) -> Flight {
        Flight {
            request: self.groups.next_request(group),
            intended,
            begun: now,
            sent: now,
            first_byte: 0,
        }
    }

    /// Sends what is queued on a connection, as far as that goes now.
    pub(super) fn send(&mut self, key: usize) -> Happened {
        let connection = &mut self.connections[key];
        if self.recorder.wants_first() {
            connection.reader.capture();
        }
        let before = connection.phase();
        let clock = self.clock;
        match connection.advance(&self.groups.requests, &mut || clock.now()) {
            Ok(sent) => self.recorder.tally().counts.sent_bytes += sent as u64,
            Err(error) => return self.broken(key, &error),
        }
        let after = connection.phase();
        if let Err(error) = self.watch(key) {
            return self.broken(key, &error);
        }
        if before == Phase::Opening && after == Phase::Open {
            self.ever_connected = true;
            self.recorder.tally().counts.connections += 1;
        }
        if after == Phase::Closing {
            return self.receive(key, true);
        }
        Happened::Nothing
    }

    /// Deals with an event of the last [`Core::wait`].
    pub(super) fn event(&mut self, index: usize) -> Happened {
        let event = self.events[index];
        let (data, flags) = (event.data, event.flags);
        let key = usize::try_from(data.u64()).unwrap_or(usize::MAX);
        let Some(connection) = self.connections.get(key) else {
            return Happened::Nothing;
        };
        let is_opening = connection.phase() == Phase::Opening;
        if is_opening || (flags.contains(epoll::EventFlags::OUT) && connection.has_unsent()) {
            let happened = self.send(key);
            if happened != Happened::Nothing || !self.connections.contains(key) {
                return happened;
            }
        }
        let ending = epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        let is_opening = self.connections[key].phase() == Phase::Opening;
        if !is_opening && flags.intersects(ending | epoll::EventFlags::IN) {
            self.receive(key, flags.intersects(ending))
        } else {
            Happened::Nothing
        }
    }

    /// Reads what has come; to the end if it is known to be near.
    fn receive(&mut self, key: usize, to_the_end: bool) -> Happened {
        let mut happened = Happened::Nothing;
        loop {
            let connection = &mut self.connections[key];
            match connection.transport.receive(&mut self.input) {
                Ok(0) => return self.ended(key),
                Ok(length) => {
                    // The kernel had no more, and says when more comes.
                    let is_drained = length < INPUT_BYTES && connection.transport.is_plain();
                    match self.take(key, length) {
                        Happened::Nothing => {}
                        Happened::Room(_) => happened = Happened::Room(key),
                        gone @ Happened::Gone { .. } => return gone,
                    }
                    let ends = to_the_end || self.is_lingering(key);
                    if is_drained && !ends {
                        return happened;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return happened,
                Err(error) => return self.broken(key, &error),
            }
        }
    }

    fn is_lingering(&self, key: usize) -> bool {
        matches!(self.connections[key].phase(), Phase::Lingering { .. })
    }

    /// Takes bytes of the input; notes each answer that they complete.
    fn take(&mut self, key: usize, length: usize) -> Happened {
        let now = self.clock.now();
        self.recorder.tally().counts.received_bytes += length as u64;
        let mut happened = Happened::Nothing;
        let mut taken = 0;
        while taken < length {
            let connection = &mut self.connections[key];
            match connection.take(&self.input[taken..length], now, self.answers_head) {
                Ok((used, answered)) => {
                    taken += used;
                    let Some(answered) = answered else { continue };
                    let lingers = answered.server_closes() && connection.flights().is_empty();
                    if lingers {
                        connection.linger(now);
                    } else {
                        happened = Happened::Room(key);
                    }
                    if !self.answered(key, answered, now) && !lingers {
                        return self.close(key);
                    }
                }
                Err(malformed) => {
                    return self.fail(key, FailureKind::Malformed, &malformed);
                }
            }
        }
        happened
    }

    /// Notes an answer; whether its connection may be used again.
    fn answered(&mut self, key: usize, answered: Answered, now: u64) -> bool {
        let Answered {
            flight, response, ..
        } = answered;
        self.last_ns = now;
        if let Some(mut first) = response.captured
            && self.recorder.wants_first()
        {
            first.tls = self.connections[key].transport.describe_tls();
            self.recorder.first(*first);
        }
        self.recorder.answered(&Answer {
            status: response.status,
            intended: flight.intended,
            sent: flight.sent,
            first_byte: flight.first_byte,
            done: now,
            connect: answered.connect,
            body_bytes: response.body_bytes,
        });
        answered.is_reusable && self.keep_alive
    }

    /// The peer has closed the connection.
    fn ended(&mut self, key: usize) -> Happened {
        if let Some(answered) = self.connections[key].end() {
            self.answered(key, answered, self.clock.now());
        }
        self.close(key)
    }

    /// Closes a connection; requests on it that have no answer get none.
    pub(super) fn close(&mut self, key: usize) -> Happened {
        self.fail(key, FailureKind::ClosedEarly, &"the connection was closed")
    }

    fn broken(&mut self, key: usize, error: &io::Error) -> Happened {
        let kind = match self.connections[key].phase() {
            Phase::Opening => FailureKind::of_connect(error),
            _ => FailureKind::of_transfer(error),
        };
        self.fail(key, kind, error)
    }

    fn fail(&mut self, key: usize, kind: FailureKind, reason: &dyn std::fmt::Display) -> Happened {
        let connection = self.connections.remove(key);
        for flight in connection.flights() {
            self.note_failure(flight, kind, reason);
        }
        let unconnected = connection.phase() == Phase::Opening;
        if unconnected {
            self.connect_failed();
        }
        Happened::Gone {
            group: connection.group,
            unconnected,
        }
    }

    fn note_failure(&mut self, flight: &Flight, kind: FailureKind, reason: &dyn std::fmt::Display) {
        let now = self.clock.now();
        self.last_ns = now;
        let lasted = now.saturating_sub(flight.intended);
        self.recorder.failed(kind, lasted, || reason.to_string());
    }

    fn connect_failed(&mut self) {
        self.connect_failures = self.connect_failures.saturating_add(1);
    }

    /// Ends connections whose oldest request has waited too long.
    pub(super) fn sweep(&mut self, gone: &mut Vec<Happened>) {
        let now = self.clock.now();
        let is_late = |connection: &Connection| match connection.phase() {
            Phase::Lingering { since } => now.saturating_sub(since) >= LINGER_NS_MAX,
            _ => connection
                .flights()
                .front()
                .is_some_and(|flight| now.saturating_sub(flight.begun) >= self.timeout_ns),
        };
        let late: Vec<usize> = self
            .connections
            .iter()
            .filter(|(_, connection)| is_late(connection))
            .map(|(key, _)| key)
            .collect();
        for key in late {
            let kind = match self.connections[key].phase() {
                Phase::Opening => FailureKind::ConnectTimeout,
                _ => FailureKind::Timeout,
            };
            let reason = format!(
                "no answer within {:?}",
                Duration::from_nanos(self.timeout_ns)
            );
            gone.push(self.fail(key, kind, &reason));
        }
    }
}
