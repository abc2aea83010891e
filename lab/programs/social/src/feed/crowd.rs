//! Thousands of WebSocket clients in one thread, at a few instructions each.
//!
//! Some of them read what they get and measure it, all others only count frames: a client must not
//! take the core from the server that it measures.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddrV4, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use greenroom_load::record::Times;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Control, OpCode};

use super::frames::{Frames, TEXT, masked};
use super::likers::Board;
use super::topics::{Message, Positions, watch};

/// Longest time to open a connection, or to get a response to the opening.
const OPEN_MAX: Duration = Duration::from_secs(10);
/// Longest silence before missing events count as lost: the ends of topics are polled every five
/// seconds.
const QUIET_MAX: Duration = Duration::from_secs(7);
const EVENTS_MAX: usize = 1024;
const INPUT_BYTES: usize = 64 * 1024;
/// Interval of checking for the end.
const PAUSE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// Clients whose watches are in force.
#[derive(Debug)]
pub(super) struct Crowd {
    clients: Vec<Client>,
    epoll: OwnedFd,
    /// The last event of each topic when they began.
    pub(super) ends: Positions,
}

#[derive(Debug)]
struct Client {
    socket: TcpStream,
    frames: Frames,
    /// Index of the address that it is connected to.
    node: usize,
    /// The last event of each topic that it watches, if it reads.
    last: Positions,
}

/// The events of the clients of one node.
#[derive(Debug, Default)]
pub(super) struct Received {
    /// From the time at which a like was due, in the clients that read.
    pub(super) latency: Times,
    /// Events that those clients got.
    pub(super) events: u64,
    /// Events that those clients should have got and did not, or not in their place.
    pub(super) missing: u64,
    /// Frames of all clients.
    pub(super) frames: u64,
    /// Bytes of all clients.
    pub(super) bytes: u64,
    /// Connections that ended.
    pub(super) lost: u64,
    /// Events that got to those who read, in their place.
    in_place: u64,
}

impl Crowd {
    /// Connects so many clients to these addresses in turn, has each watch its topics from now on,
    /// and waits until the watches are in force. Every `step`-th one reads what it gets.
    pub(super) fn gather(
        addresses: &[SocketAddrV4],
        count: usize,
        step: usize,
        topics: impl Fn(usize) -> Vec<String>,
    ) -> anyhow::Result<Self> {
        let mut crowd = Self {
            clients: Vec::with_capacity(count),
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC).context("epoll")?,
            ends: Positions::new(),
        };
        for number in 0..count {
            let node = number % addresses.len();
            let reads = (number / addresses.len()).is_multiple_of(step);
            let (client, at) = Client::open(addresses[node], node, reads, &topics(number))
                .with_context(|| format!("client {number}"))?;
            let data = epoll::EventData::new_u64(number as u64);
            let events = epoll::EventFlags::IN;
            epoll::add(&crowd.epoll, &client.socket, data, events).context("epoll")?;
            crowd.ends.extend(at);
            crowd.clients.push(client);
        }
        Ok(crowd)
    }

    /// Listens for the likes of the board until they are over and their events are there, or none
    /// comes any more; returns what came, node by node.
    pub(super) fn listen(
        &mut self,
        board: &Board,
        likes_are_over: &AtomicBool,
    ) -> anyhow::Result<Vec<Received>> {
        let nodes = self.clients.iter().map(|client| client.node + 1).max();
        let mut received = Vec::new();
        received.resize_with(nodes.unwrap_or(0), Received::default);
        let watched: usize = self.clients.iter().map(|client| client.last.len()).sum();
        let awaited = watched as u64 * board.likes_each;
        let mut events = Vec::with_capacity(EVENTS_MAX);
        let mut input = vec![0; INPUT_BYTES];
        let mut last_news = Instant::now();
        loop {
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&PAUSE)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error).context("epoll"),
            }
            for event in &events {
                let client = &mut self.clients[usize::try_from(event.data.u64())?];
                let received = &mut received[client.node];
                if !client.read(&mut input, board, received)? {
                    received.lost += 1;
                    epoll::delete(&self.epoll, &client.socket).context("epoll")?;
                }
            }
            let is_over = likes_are_over.load(Ordering::Acquire);
            if !events.is_empty() || !is_over {
                last_news = Instant::now();
            }
            let in_place: u64 = received.iter().map(|node| node.in_place).sum();
            if is_over && in_place == awaited || last_news.elapsed() > QUIET_MAX {
                break;
            }
        }
        for client in &self.clients {
            let never = |(topic, last): (&String, &u64)| board.last(topic).saturating_sub(*last);
            received[client.node].missing += client.last.iter().map(never).sum::<u64>();
        }
        Ok(received)
    }
}

impl Client {
    /// Connects, and waits until all watches are in force; returns their positions, too.
    fn open(
        address: SocketAddrV4,
        node: usize,
        reads: bool,
        topics: &[String],
    ) -> anyhow::Result<(Self, Positions)> {
        let mut socket = TcpStream::connect_timeout(&address.into(), OPEN_MAX)?;
        socket.set_read_timeout(Some(OPEN_MAX))?;
        let request = format!(
            "GET /feed HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        socket.write_all(request.as_bytes())?;
        let mut head = Vec::new();
        // Byte by byte, so that nothing behind the head is taken; the server sends nothing before a
        // command.
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            socket.read_exact(&mut byte).context("the handshake")?;
            head.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&head);
        ensure!(head.starts_with("HTTP/1.1 101"), "no WebSocket: {head}");
        let command = watch(topics.iter().map(|topic| (topic.as_str(), None)));
        socket.write_all(&masked(TEXT, command.as_bytes())?)?;
        let (mut frames, mut at, mut input) = (Frames::default(), Positions::new(), [0; 4096]);
        while at.len() < topics.len() {
            let read = socket.read(&mut input).context("no response")?;
            ensure!(read > 0, "the server closed the connection");
            frames.feed(&input[..read], |opcode, payload| {
                if opcode == TEXT {
                    let message: Message<'_> = serde_json::from_slice(payload)?;
                    ensure!(message.refused.is_empty(), "refused: {:?}", message.refused);
                    at.extend(message.at);
                    at.extend(message.reset);
                }
                Ok(())
            })?;
        }
        frames.skips_texts = !reads;
        socket.set_nonblocking(true)?;
        let last = if reads { at.clone() } else { Positions::new() };
        let client = Self {
            socket,
            frames,
            node,
            last,
        };
        Ok((client, at))
    }

    /// Reads once; returns false at the end of the connection.
    fn read(
        &mut self,
        input: &mut [u8],
        board: &Board,
        received: &mut Received,
    ) -> anyhow::Result<bool> {
        let read = match self.socket.read(input) {
            Ok(read) => read,
            Err(error) => {
                let kinds = [ErrorKind::WouldBlock, ErrorKind::Interrupted];
                return Ok(kinds.contains(&error.kind()));
            }
        };
        let arrived = Instant::now();
        received.bytes += read as u64;
        let (socket, last) = (&mut self.socket, &mut self.last);
        self.frames.feed(&input[..read], |opcode, payload| {
            if opcode == TEXT {
                received.frames += 1;
                if !payload.is_empty() {
                    received.note(payload, board, last, arrived)?;
                }
            } else if opcode == OpCode::Control(Control::Ping) {
                // A pong that does not fit is not missed by a server that sends so much.
                drop(socket.write(&masked(OpCode::Control(Control::Pong), payload)?));
            }
            Ok(())
        })?;
        Ok(read > 0)
    }
}

impl Received {
    fn note(
        &mut self,
        text: &[u8],
        board: &Board,
        last: &mut Positions,
        arrived: Instant,
    ) -> anyhow::Result<()> {
        let message: Message<'_> = serde_json::from_slice(text).context("a message")?;
        for event in &message.events {
            let topic = event.topic.as_ref();
            let last = last.get_mut(topic).context("a topic that is not watched")?;
            self.events += 1;
            if event.seq == *last + 1 {
                *last = event.seq;
                self.in_place += 1;
            } else {
                self.missing += 1;
            }
            if let Some(latency) = board.latency(topic, event.seq, arrived) {
                let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
                self.latency.record(nanos);
            }
        }
        Ok(())
    }
}
