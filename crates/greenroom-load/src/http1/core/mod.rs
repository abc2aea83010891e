//! The connections of a thread and their epoll instance.

mod alarm;
mod end;
mod receive;

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use slab::Slab;

use self::alarm::Alarm;
use super::connection::{Connection, Flight, Interest, Phase};
use super::requests::Requests;
use super::transport::Transport;
use crate::record::{FailureKind, Recorder};
use crate::run::{Address, Clock, Endpoint, Routes, Share};

/// Events taken from the kernel at once.
const EVENTS_MAX: usize = 512;
/// Bytes read at once.
const INPUT_BYTES: usize = 64 * 1024;
/// Failures to connect in a row, without any success, after which a run is given up (as ab does).
const CONNECT_FAILURES_MAX: u32 = 10;

/// The connections of a thread, and the outcomes of the requests on them.
pub(super) struct Core {
    pub(super) clock: Clock,
    pub(super) routes: Routes,
    pub(super) recorder: Recorder,
    endpoints: Vec<Endpoint>,
    requests: Requests,
    epoll: OwnedFd,
    alarm: Alarm,
    connections: Slab<Connection>,
    events: Vec<epoll::Event>,
    input: Vec<u8>,
    /// Connections with more bytes to read than one event's share.
    unread: Vec<usize>,
    /// The connection whose response is kept as the first one.
    capturing: Option<usize>,
    sources: Vec<IpAddr>,
    next_source: usize,
    window_bytes: Option<usize>,
    timeout_ns: u64,
    keep_alive: bool,
    no_delay: bool,
    to_head: bool,
    /// Consecutive failed attempts to connect; `None` once one succeeded.
    failed_attempts: Option<u32>,
    /// The time at which sending ends.
    sending_ends: u64,
    /// The time at which the last request ended; of one that failed, at most that.
    last_ns: u64,
}

/// The result of an attempt to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opened {
    /// The new connection.
    Connection(usize),
    /// The attempt failed at once, which is recorded.
    Failed,
    /// The server's backlog is full (a Unix socket); nothing was begun.
    Busy,
}

/// The effect of an event on the loop that sends requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happened {
    Nothing,
    /// The connection can take another request.
    Ready(usize),
    /// A connection is gone.
    Gone {
        /// It was never established.
        unconnected: bool,
    },
}

impl Core {
    pub(super) fn new(
        share: &Share,
        endpoints: &[Endpoint],
        recorder: Recorder,
    ) -> io::Result<Self> {
        let plan = &share.plan;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self {
            clock: share.clock,
            routes: Routes::new(endpoints, share.index).through(share.paths.clone()),
            endpoints: endpoints.to_vec(),
            requests: Requests::new(plan, endpoints),
            recorder,
            alarm: Alarm::new(&epoll)?,
            epoll,
            connections: Slab::new(),
            events: Vec::with_capacity(EVENTS_MAX),
            input: vec![0; INPUT_BYTES],
            unread: Vec::new(),
            capturing: None,
            sources: plan.sources.clone(),
            next_source: usize::try_from(share.index).unwrap_or(0),
            window_bytes: plan.window_bytes,
            timeout_ns: u64::try_from(plan.timeout.as_nanos()).unwrap_or(u64::MAX),
            keep_alive: plan.keep_alive,
            // A single request leaves in one segment anyway, and the option costs a system call.
            no_delay: plan.in_flight_max > 1
                || endpoints.iter().any(|endpoint| endpoint.tls.is_some()),
            to_head: plan.request.method == "HEAD",
            failed_attempts: Some(0),
            sending_ends: share.sending_ends(),
            last_ns: 0,
        })
    }

    /// Returns the number of connections that are open or being opened.
    pub(super) fn open_connections(&self) -> usize {
        self.connections.len()
    }

    /// Returns the number of requests without a response.
    pub(super) fn in_flight(&self) -> usize {
        let flights = |(_, connection): (usize, &Connection)| connection.flights().len();
        self.connections.iter().map(flights).sum()
    }

    /// Returns the number of requests in flight on a connection.
    pub(super) fn flights(&self, key: usize) -> usize {
        self.connections[key].flights().len()
    }

    /// Returns true if this connection is of the group and waits for a request.
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

    /// Returns true if every attempt to connect failed, and there were enough of them, while no
    /// other thread of the stream had a response.
    pub(super) fn is_hopeless(&self) -> bool {
        let is_failing = |failed| failed >= CONNECT_FAILURES_MAX;
        self.failed_attempts.is_some_and(is_failing) && self.recorder.wants_first()
    }

    /// Waits for events until this time, or takes those at hand if it is over; returns their
    /// number.
    pub(super) fn wait(&mut self, until: u64) -> io::Result<usize> {
        self.events.clear();
        let is_ahead = self.alarm.set(until, self.clock)?;
        let timeout = (!is_ahead).then(Timespec::default);
        match epoll::wait(
            &self.epoll,
            spare_capacity(&mut self.events),
            timeout.as_ref(),
        ) {
            Ok(count) => Ok(count),
            Err(Errno::INTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns true if the last events left bytes unread.
    pub(super) fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Opens a connection for a request with this intended time, from which on the time-out holds
    /// for a full backlog.
    pub(super) fn open(&mut self, group: usize, intended: u64, now: u64) -> Opened {
        let opened = self.connect(group);
        if let Err(error) = &opened
            && error.kind() == io::ErrorKind::WouldBlock
            && now.saturating_sub(intended) < self.timeout_ns
        {
            return Opened::Busy;
        }
        let flight = self.flight(group, intended, now);
        match opened {
            Ok(transport) => {
                let mut connection = Connection::new(transport, group, now);
                connection.push(flight);
                connection.note_connected(self.clock.now());
                Opened::Connection(self.connections.insert(connection))
            }
            Err(error) => {
                self.connect_failed();
                self.note_failure(&flight, FailureKind::of_connect(&error), &error);
                Opened::Failed
            }
        }
    }

    fn connect(&mut self, group: usize) -> io::Result<Transport> {
        let source = self.source();
        let endpoint = &self.endpoints[self.routes.first_of(group)];
        let transport = Transport::connect(endpoint, source, self.window_bytes)?;
        if self.no_delay && matches!(endpoint.address, Address::Tcp(_)) {
            transport.set_no_delay()?;
        }
        Ok(transport)
    }

    /// Registers the connection for the events that it waits for.
    ///
    /// Called only after the first attempt to send: on a fast network that succeeds right behind
    /// `connect`, and only the response is left to wait for.
    fn watch(&mut self, key: usize) -> io::Result<()> {
        let connection = &mut self.connections[key];
        let wanted = if connection.has_unsent() {
            Interest::ReadAndWrite
        } else {
            Interest::Read
        };
        // Once registered for writing it stays so: edge-triggered, that costs no further events.
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
            request: self.routes.next_within(group),
            intended,
            begun: now,
            sent: now,
            first_byte: 0,
        }
    }

    /// Sends the queued requests of a connection, as far as possible now.
    pub(super) fn send(&mut self, key: usize) -> Happened {
        let connection = &mut self.connections[key];
        let before = connection.phase();
        let clock = self.clock;
        match connection.advance(&self.requests, &mut || clock.now()) {
            Ok(sent) => self.recorder.tally().counts.sent_bytes += sent as u64,
            Err(error) => return self.broken(key, &error),
        }
        let after = connection.phase();
        if let Err(error) = self.watch(key) {
            return self.broken(key, &error);
        }
        if before == Phase::Opening && after == Phase::Open {
            self.failed_attempts = None;
            self.recorder.tally().counts.connections += 1;
        }
        if after == Phase::Closing {
            return self.receive(key, true);
        }
        Happened::Nothing
    }
}
