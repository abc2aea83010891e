//! The physical limit: level-triggered epoll and a canned response, at once or after a delay. Each
//! new connection is read and served before it is registered.

use std::collections::VecDeque;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use memchr::memmem;
use nix::sys::socket::{setsockopt, sockopt::TcpNoDelay};
use nix::{getsockopt_impl, setsockopt_impl, sockopt_impl};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, accept_with, recv, send};
use slab::Slab;

use crate::apps::HELLO;

sockopt_impl!(
    /// The kernel reports a connection only once it has data.
    TcpDeferAccept, Both, libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, u32
);

const LISTENER: u64 = u64::MAX;
const EVENTS_MAX: usize = 1024;
const SCRATCH_BYTES: usize = 64 * 1024;
/// The longest head that is read.
const REST_BYTES_MAX: usize = 64 * 1024;
/// Responses that a run of pipelined requests gets by one write.
const COPIES_MAX: usize = 32;

/// Writes the response to all requests: a few words, or so many bytes.
pub(crate) fn response(body_bytes: Option<usize>, say_keep_alive: bool) -> Vec<u8> {
    let body = body_bytes.map_or(HELLO.into(), |bytes| "x".repeat(bytes));
    let connection = if say_keep_alive {
        "connection: keep-alive\r\n"
    } else {
        ""
    };
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\n\
         date: Sun, 06 Nov 1994 08:49:37 GMT\r\n{connection}\r\n{body}"
    )
    .into_bytes()
}

/// Serves until the kernel refuses to wait.
pub(crate) fn serve(
    listener: TcpListener,
    response: &[u8],
    delay: Option<Duration>,
) -> anyhow::Result<()> {
    // Accepted sockets inherit both options.
    setsockopt(&listener, TcpNoDelay, &true)?;
    setsockopt(&listener, TcpDeferAccept, &1)?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let data = epoll::EventData::new_u64(LISTENER);
    epoll::add(&epoll, &listener, data, epoll::EventFlags::IN)?;
    let copies = (SCRATCH_BYTES / response.len()).clamp(1, COPIES_MAX);
    let server = Server {
        epoll,
        listener,
        connections: Slab::new(),
        response: response.repeat(copies),
        response_bytes: response.len(),
        delay,
        due: VecDeque::new(),
        scratch: vec![0; SCRATCH_BYTES],
        serial: 0,
    };
    server.run()
}

struct Server {
    epoll: OwnedFd,
    listener: TcpListener,
    connections: Slab<Connection>,
    /// Copies of the response, one after the other.
    response: Vec<u8>,
    response_bytes: usize,
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

struct Connection {
    socket: OwnedFd,
    /// Tells this connection from an earlier one in the same slot.
    serial: u64,
    /// The begin of a head.
    rest: Vec<u8>,
    owed_bytes: usize,
    closing: bool,
}

/// The next step with a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Close,
    Read,
    Write,
}

impl Server {
    fn run(mut self) -> anyhow::Result<()> {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        loop {
            events.clear();
            let due = self.due.front().map(|due| due.at);
            let wait = due.map(|at| at.saturating_duration_since(Instant::now()));
            let timeout = wait.map(Timespec::try_from).transpose()?;
            match epoll::wait(&self.epoll, spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            self.send_due();
            for event in &events {
                match event.data.u64() {
                    LISTENER => self.accept(),
                    token => self.ready(usize::try_from(token)?, event.flags),
                }
            }
        }
    }

    fn accept(&mut self) {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        while let Ok(socket) = accept_with(&self.listener, flags) {
            self.serial += 1;
            let key = self.connections.insert(Connection {
                socket,
                serial: self.serial,
                rest: Vec::new(),
                owed_bytes: 0,
                closing: false,
            });
            let next = self.read(key);
            self.watch(key, next, true);
        }
    }

    fn ready(&mut self, key: usize, flags: epoll::EventFlags) {
        if !self.connections.contains(key) {
            return;
        }
        let next = if flags.contains(epoll::EventFlags::OUT) {
            match self.write(key, 0) {
                // From now on it is read again.
                Next::Read => return self.watch(key, Next::Read, false),
                next => next,
            }
        } else {
            self.read(key)
        };
        if next != Next::Read {
            self.watch(key, next, false);
        }
    }

    /// Registers what is waited for, or lets the connection go.
    fn watch(&mut self, key: usize, next: Next, is_new: bool) {
        let flags = match next {
            Next::Write => epoll::EventFlags::OUT,
            Next::Close | Next::Read => epoll::EventFlags::IN,
        };
        let (data, socket) = (
            epoll::EventData::new_u64(key as u64),
            &self.connections[key].socket,
        );
        let watched = match (next, is_new) {
            (Next::Close, _) => Err(Errno::CONNRESET),
            (_, true) => epoll::add(&self.epoll, socket, data, flags),
            (_, false) => epoll::modify(&self.epoll, socket, data, flags),
        };
        if watched.is_err() {
            self.connections.remove(key);
        }
    }

    fn read(&mut self, key: usize) -> Next {
        let connection = &mut self.connections[key];
        let responses = match recv(&connection.socket, &mut *self.scratch, RecvFlags::empty()) {
            Ok((0, _)) => return Next::Close,
            Ok((received, _)) => connection.take(&self.scratch[..received]),
            Err(Errno::AGAIN | Errno::INTR) => return Next::Read,
            Err(_) => return Next::Close,
        };
        match (responses, self.delay) {
            (None, _) => Next::Close,
            (Some(0), _) => Next::Read,
            (Some(responses), None) => self.write(key, responses),
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
            let connection = self.connections.get(due.key);
            if connection.is_some_and(|connection| connection.serial == due.serial) {
                let next = self.write(due.key, due.responses);
                if next != Next::Read {
                    self.watch(due.key, next, false);
                }
            }
        }
    }

    /// Writes what was owed and `responses` more.
    fn write(&mut self, key: usize, responses: usize) -> Next {
        let (connection, length) = (&mut self.connections[key], self.response_bytes);
        connection.owed_bytes += responses * length;
        while connection.owed_bytes > 0 {
            let offset = (length - connection.owed_bytes % length) % length;
            let end = self.response.len().min(offset + connection.owed_bytes);
            match send(
                &connection.socket,
                &self.response[offset..end],
                SendFlags::NOSIGNAL,
            ) {
                Ok(sent) => connection.owed_bytes -= sent,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Next::Write,
                Err(_) => return Next::Close,
            }
        }
        if connection.closing {
            Next::Close
        } else {
            Next::Read
        }
    }
}

impl Connection {
    /// Counts the heads that became complete; `None` if one is too long.
    fn take(&mut self, input: &[u8]) -> Option<usize> {
        if self.rest.is_empty() {
            let (count, bytes, close) = heads(input);
            self.rest.extend_from_slice(&input[bytes..]);
            self.closing |= close;
            return Some(count);
        }
        self.rest.extend_from_slice(input);
        let (count, bytes, close) = heads(&self.rest);
        self.rest.drain(..bytes);
        self.closing |= close;
        (self.rest.len() <= REST_BYTES_MAX).then_some(count)
    }
}

/// Counts heads up to the first that asks to close: their number, their bytes, and whether one did.
pub(crate) fn heads(input: &[u8]) -> (usize, usize, bool) {
    let (mut count, mut bytes, mut close) = (0, 0, false);
    while !close && let Some(end) = memmem::find(&input[bytes..], b"\r\n\r\n") {
        close = asks_to_close(&input[bytes..bytes + end + 2]);
        bytes += end + 4;
        count += 1;
    }
    (count, bytes, close)
}

fn asks_to_close(head: &[u8]) -> bool {
    let has = |needle: &[u8]| memmem::find(head, needle).is_some();
    if has(b" HTTP/1.1\r\n") {
        has(b"\nConnection: close\r\n") || has(b"\nconnection: close\r\n")
    } else {
        !has(b"\nConnection: Keep-Alive\r\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipelined_heads_are_counted_and_the_rest_is_left() {
        let input = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n\r\nGET /";
        assert_eq!(heads(input), (2, 45, false));
    }

    #[test]
    fn http_1_0_closes_unless_it_asks_to_stay() {
        assert!(heads(b"GET / HTTP/1.0\r\n\r\n").2);
        assert!(!heads(b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").2);
        assert!(heads(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n").2);
    }
}
