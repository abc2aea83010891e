//! The loop: level-triggered epoll, each new connection read and served before it is registered.

use std::collections::VecDeque;
use std::io;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt::TcpNoDelay};
use nix::{getsockopt_impl, setsockopt_impl, sockopt_impl};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use slab::Slab;

use crate::connection::{Connection, Next};

sockopt_impl!(
    /// The kernel reports a connection only once it has data.
    TcpDeferAccept, Both, libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, u32
);

const LISTENER: u64 = u64::MAX;
const EVENTS_MAX: usize = 1024;
const SCRATCH_BYTES: usize = 64 * 1024;

/// A canned response, repeated so that a run of pipelined responses is one write.
pub struct Response {
    copies: Vec<u8>,
    bytes: usize,
}

impl Response {
    /// A response that is written up to `copies` times in one system call.
    #[must_use]
    pub fn new(response: &[u8], copies: usize) -> Self {
        Self {
            copies: response.repeat(copies.max(1)),
            bytes: response.len(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn copies_from(&self, offset: usize, owed: usize) -> &[u8] {
        let end = self.copies.len().min(offset + owed);
        &self.copies[offset..end]
    }
}

/// One thread that gives every request the same response, at once or after the same delay.
pub struct Server {
    epoll: rustix::fd::OwnedFd,
    listener: TcpListener,
    connections: Slab<Connection>,
    response: Response,
    delay: Option<Duration>,
    due: VecDeque<Due>,
    scratch: Vec<u8>,
    serial: u64,
}

struct Due {
    at: Instant,
    key: usize,
    serial: u64,
    responses: usize,
}

impl Server {
    /// Takes over a non-blocking listener.
    ///
    /// # Errors
    /// When the kernel refuses a socket option or an epoll instance.
    pub fn new(
        listener: TcpListener,
        response: Response,
        delay: Option<Duration>,
    ) -> io::Result<Self> {
        // Accepted sockets inherit both options.
        setsockopt(&listener, TcpNoDelay, &true)?;
        setsockopt(&listener, TcpDeferAccept, &1)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(
            &epoll,
            &listener,
            epoll::EventData::new_u64(LISTENER),
            epoll::EventFlags::IN,
        )?;
        let (connections, due, scratch) = (Slab::new(), VecDeque::new(), vec![0; SCRATCH_BYTES]);
        Ok(Self {
            epoll,
            listener,
            connections,
            response,
            delay,
            due,
            scratch,
            serial: 0,
        })
    }

    /// Serves until the process ends.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn run(mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        loop {
            events.clear();
            let timeout = self.next_due();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            self.send_due();
            for event in &events {
                match event.data.u64() {
                    LISTENER => self.accept(),
                    token => self.ready(token, event.flags),
                }
            }
        }
    }

    fn next_due(&self) -> Option<Timespec> {
        let wait = self
            .due
            .front()?
            .at
            .saturating_duration_since(Instant::now());
        Timespec::try_from(wait).ok()
    }

    fn accept(&mut self) {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        while let Ok(socket) = accept_with(&self.listener, flags) {
            self.serial += 1;
            let key = self
                .connections
                .insert(Connection::new(socket, self.serial));
            let next = self.read(key);
            self.register(key, &next);
        }
    }

    fn register(&mut self, key: usize, next: &Next) {
        let interest = interest(next);
        let data = epoll::EventData::new_u64(key as u64);
        let registered = *next != Next::Close
            && epoll::add(&self.epoll, &self.connections[key].socket, data, interest).is_ok();
        if !registered {
            self.connections.remove(key);
        }
    }

    fn ready(&mut self, token: u64, flags: epoll::EventFlags) {
        let Some(key) = usize::try_from(token)
            .ok()
            .filter(|key| self.connections.contains(*key))
        else {
            return;
        };
        if flags.contains(epoll::EventFlags::OUT) {
            let next = self.connections[key].write(&self.response, 0);
            self.follow(key, &next);
            return;
        }
        match self.read(key) {
            Next::Read => {}
            next => self.follow(key, &next),
        }
    }

    fn read(&mut self, key: usize) -> Next {
        let connection = &mut self.connections[key];
        match (connection.read(&mut self.scratch), self.delay) {
            (None, _) => Next::Close,
            (Some(0), _) => Next::Read,
            (Some(responses), None) => connection.write(&self.response, responses),
            (Some(responses), Some(delay)) => {
                let (at, serial) = (Instant::now() + delay, connection.serial);
                self.due.push_back(Due {
                    at,
                    key,
                    serial,
                    responses,
                });
                Next::Read
            }
        }
    }

    fn send_due(&mut self) {
        let now = Instant::now();
        while let Some(due) = self.due.pop_front_if(|due| due.at <= now) {
            let Some(connection) = self.connections.get_mut(due.key) else {
                continue;
            };
            if connection.serial == due.serial {
                let next = connection.write(&self.response, due.responses);
                if next != Next::Read {
                    self.follow(due.key, &next);
                }
            }
        }
    }

    fn follow(&mut self, key: usize, next: &Next) {
        let data = epoll::EventData::new_u64(key as u64);
        let kept = *next != Next::Close
            && epoll::modify(
                &self.epoll,
                &self.connections[key].socket,
                data,
                interest(next),
            )
            .is_ok();
        if !kept {
            self.connections.remove(key);
        }
    }
}

fn interest(next: &Next) -> epoll::EventFlags {
    match next {
        Next::Close | Next::Read => epoll::EventFlags::IN,
        Next::Write => epoll::EventFlags::OUT,
    }
}
