//! The connections and their epoll instance.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use slab::Slab;

use crate::Target;
use crate::connection::Connection;

const EVENTS_MAX: usize = 1024;
const SCRATCH_BYTES: usize = 256 * 1024;

/// Connections to one target, all sending the same request.
pub struct Engine {
    epoll: OwnedFd,
    address: SocketAddrV4,
    request: Vec<u8>,
    connections: Slab<Connection>,
    events: Vec<epoll::Event>,
    scratch: Vec<u8>,
}

/// What became of a request or of a connection.
#[derive(Debug)]
pub enum Outcome {
    /// A 200 answer arrived in full.
    Answered {
        /// The connection, idle again unless it was closed.
        connection: Option<usize>,
        /// From the time given with the request to the last byte of its answer.
        latency: Duration,
    },
    /// The request has no good answer; its connection is gone.
    Failed(anyhow::Error),
    /// The server closed an idle connection.
    IdleClosed(usize),
}

impl Engine {
    /// No connection yet.
    ///
    /// # Errors
    /// When the kernel refuses an epoll instance.
    pub fn new(target: &Target) -> anyhow::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).context("no epoll instance")?;
        let (address, request) = (target.address, target.request());
        let (connections, scratch) = (Slab::new(), vec![0; SCRATCH_BYTES]);
        Ok(Self {
            epoll,
            address,
            request,
            connections,
            events: Vec::with_capacity(EVENTS_MAX),
            scratch,
        })
    }

    /// Connections that are open or being opened.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Opens a connection and sends its first request as soon as it is established.
    ///
    /// # Errors
    /// When there is no descriptor, no port or no listener.
    pub fn open(&mut self, source: Option<Ipv4Addr>, since: Instant) -> anyhow::Result<()> {
        let mut connection = Connection::open(self.address, source)?;
        connection.start(&self.request, since)?;
        let entry = self.connections.vacant_entry();
        let data = epoll::EventData::new_u64(entry.key() as u64);
        let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
        epoll::add(&self.epoll, &connection.socket, data, flags)
            .context("epoll refuses the connection")?;
        entry.insert(connection);
        Ok(())
    }

    /// Sends the next request on an idle connection.
    ///
    /// # Errors
    /// When the connection is broken; it is gone then.
    pub fn send(&mut self, connection: usize, since: Instant) -> anyhow::Result<()> {
        let started = self.connections[connection].start(&self.request, since);
        if started.is_err() {
            self.connections.remove(connection);
        }
        started
    }

    /// Waits at most `timeout` and adds what happened to `outcomes`.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn wait(&mut self, timeout: Duration, outcomes: &mut Vec<Outcome>) -> anyhow::Result<()> {
        let timeout = Timespec::try_from(timeout).context("timeout too long")?;
        self.events.clear();
        match epoll::wait(
            &self.epoll,
            spare_capacity(&mut self.events),
            Some(&timeout),
        ) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("epoll_wait"),
        }
        for index in 0..self.events.len() {
            let event = self.events[index];
            let key = usize::try_from(event.data.u64()).context("a token is a slab key")?;
            outcomes.extend(self.ready(key, event.flags));
        }
        Ok(())
    }

    fn ready(&mut self, key: usize, flags: epoll::EventFlags) -> Option<Outcome> {
        let connection = self.connections.get_mut(key)?;
        if flags.contains(epoll::EventFlags::OUT)
            && let Err(error) = connection.writable(&self.request)
        {
            return Some(self.broken(key, error));
        }
        let read_flags = epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        if !flags.intersects(read_flags) {
            return None;
        }
        match connection.readable(&mut self.scratch) {
            Ok(None) => None,
            Ok(Some(complete)) => Some(self.complete(key, complete.status, complete.keep_alive)),
            Err(error) => Some(self.broken(key, error)),
        }
    }

    fn complete(&mut self, key: usize, status: u16, keep_alive: bool) -> Outcome {
        let since = self.connections[key].since.take();
        let Some(since) = since.filter(|_| status == 200) else {
            self.connections.remove(key);
            return Outcome::Failed(anyhow::anyhow!("status {status}"));
        };
        let connection = keep_alive.then_some(key);
        if connection.is_none() {
            self.connections.remove(key);
        }
        Outcome::Answered {
            connection,
            latency: since.elapsed(),
        }
    }

    fn broken(&mut self, key: usize, error: anyhow::Error) -> Outcome {
        match self.connections.remove(key).since {
            Some(_) => Outcome::Failed(error),
            None => Outcome::IdleClosed(key),
        }
    }
}
