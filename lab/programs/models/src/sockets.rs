//! Connections that wait for their sockets while they belong to nobody.

use std::collections::HashMap;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

use crate::Connection;
use crate::connection::accept_many;

const LISTENER: u64 = u64::MAX;
/// Events that are taken from the kernel at once.
const EVENTS_MAX: usize = 256;
/// So long nothing has to happen before silent connections are looked for.
const SWEEP: Timespec = Timespec {
    tv_sec: 5,
    tv_nsec: 0,
};

/// A listener, and connections that wait for their clients, by descriptor.
#[derive(Debug)]
pub struct Sockets {
    epoll: OwnedFd,
    listener: TcpListener,
    waiting: Mutex<HashMap<u64, Connection>>,
    open: Arc<()>,
}

/// Connections that wait no longer: new ones; those whose clients have sent something; those whose
/// clients have taken some of what was to be sent.
#[derive(Debug, Default)]
pub struct Ready(
    pub Vec<Connection>,
    pub Vec<Connection>,
    pub Vec<Connection>,
);

impl Sockets {
    /// Makes the sockets of one listener.
    ///
    /// # Errors
    /// Those of the system.
    pub fn new(listener: TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = EventData::new_u64(LISTENER);
        epoll::add(&epoll, &listener, data, EventFlags::IN)?;
        Ok(Self {
            epoll,
            listener,
            waiting: Mutex::default(),
            open: Arc::default(),
        })
    }

    /// Lets a connection wait until its client has taken what is to be sent, or sends something.
    /// One for which that is not possible is closed.
    pub fn wait(&self, connection: Connection) {
        let descriptor = u64::try_from(connection.stream.as_raw_fd()).unwrap_or(LISTENER);
        let data = EventData::new_u64(descriptor);
        let direction = if connection.has_output() {
            EventFlags::OUT
        } else {
            EventFlags::IN
        };
        let events = direction | EventFlags::ONESHOT;
        // It is taken by `next` once it is ready, so it has to be there before.
        let mut waiting = self.waiting.lock();
        let stream = &connection.stream;
        let armed = match epoll::modify(&self.epoll, stream, data, events) {
            Err(Errno::NOENT) => epoll::add(&self.epoll, stream, data, events),
            armed => armed,
        };
        if armed.is_ok() {
            waiting.insert(descriptor, connection);
        }
    }

    /// Returns the next connections that are ready, after at most some seconds.
    ///
    /// # Errors
    /// Those of epoll.
    pub fn next(&self) -> io::Result<Ready> {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&SWEEP)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let Ready(mut accepted, mut readable, mut writable) = Ready::default();
        let mut waiting = self.waiting.lock();
        for event in &events {
            let data = event.data;
            if data.u64() == LISTENER {
                accepted = accept_many(&self.listener, &self.open);
            }
            let Some(connection) = waiting.remove(&data.u64()) else {
                continue;
            };
            if connection.has_output() {
                writable.push(connection);
            } else {
                readable.push(connection);
            }
        }
        if events.is_empty() {
            waiting.retain(|_, connection| !connection.is_idle());
        }
        Ok(Ready(accepted, readable, writable))
    }
}
