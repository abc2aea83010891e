//! Thousands of WebSocket clients in one thread, at a few instructions each.
//!
//! Some of them read what they get and measure it, all others only count frames: a client must not
//! take the core from the server that it measures.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use hdrhistogram::Histogram;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use super::frames::{Frame, Frames, pong, text};
use super::{Board, Message, Positions};

/// Longest time to open a connection, or to get a response to the opening.
const OPEN_MAX: Duration = Duration::from_secs(10);
const EVENTS_MAX: usize = 1024;
const INPUT_BYTES: usize = 64 * 1024;
/// Interval of checking for the end.
const PAUSE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};
/// The bytes at the end of an HTTP head.
const HEAD_END: &[u8] = b"\r\n\r\n";
/// Longest latency; longer ones count as this: a minute.
const LATENCY_NS_MAX: u64 = 60_000_000_000;
/// Significant digits of a latency.
const DIGITS: u8 = 3;

/// Clients whose watches are in force.
#[derive(Debug)]
pub(crate) struct Crowd {
    clients: Vec<Client>,
    /// The last event of each topic when they began.
    pub(crate) ends: Positions,
}

#[derive(Debug)]
struct Client {
    socket: TcpStream,
    frames: Frames,
    /// Index of the address that it is connected to.
    node: usize,
    reads: bool,
    watched: Vec<String>,
    /// The last event of each picture, for clients that read.
    last: Vec<Option<u64>>,
    is_lost: bool,
}

/// The events of the clients of one node.
#[derive(Debug)]
pub(crate) struct Received {
    /// Nanoseconds from the time at which a like was due, in the clients that read.
    pub(crate) latency: Histogram<u64>,
    /// Events that those clients got.
    pub(crate) events: u64,
    /// Events that those clients should have got and did not, or not in their place.
    pub(crate) missing: u64,
    /// Frames of all clients.
    pub(crate) frames: u64,
    /// Bytes of all clients.
    pub(crate) bytes: u64,
    /// Connections that ended.
    pub(crate) lost: u64,
}

/// Clients that are listening; [`Listening::end`] returns what they got.
#[derive(Debug)]
pub(crate) struct Listening {
    thread: JoinHandle<anyhow::Result<(Crowd, Vec<Received>)>>,
    likes_are_over: Arc<AtomicBool>,
}

impl Crowd {
    /// Connects so many clients to these addresses in turn, has each watch its topics from now on,
    /// and waits until the watches are in force. Every `step`-th one reads what it gets.
    pub(crate) fn gather(
        addresses: &[SocketAddr],
        count: usize,
        step: usize,
        topics: impl Fn(usize) -> Vec<String>,
    ) -> anyhow::Result<Self> {
        let mut ends = Positions::new();
        let mut clients = Vec::with_capacity(count);
        for number in 0..count {
            let node = number % addresses.len();
            let turn = number / addresses.len();
            let reads = turn.is_multiple_of(step);
            let mut client = Client::open(addresses[node], node, reads)
                .with_context(|| format!("client {number}"))?;
            client.watched = topics(number);
            let at = client
                .watch()
                .with_context(|| format!("client {number}, watching"))?;
            ends.extend(at);
            clients.push(client);
        }
        Ok(Self { clients, ends })
    }

    /// Listens in a thread of its own, for likes that are put on the board.
    pub(crate) fn listen(self, board: Arc<Board>, quiet_max: Duration) -> Listening {
        let likes_are_over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&likes_are_over);
        let thread = thread::spawn(move || Loop::new(self, board)?.run(&is_over, quiet_max));
        Listening {
            thread,
            likes_are_over,
        }
    }

    fn nodes(&self) -> usize {
        let nodes = self.clients.iter().map(|client| client.node + 1);
        nodes.max().unwrap_or(0)
    }
}

impl Listening {
    /// Waits until the events of all likes are there, or none comes any more, and returns what
    /// came, node by node.
    pub(crate) fn end(self) -> anyhow::Result<(Crowd, Vec<Received>)> {
        self.likes_are_over.store(true, Ordering::Release);
        match self.thread.join() {
            Ok(received) => received,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Client {
    fn open(address: SocketAddr, node: usize, reads: bool) -> anyhow::Result<Self> {
        let mut socket = TcpStream::connect_timeout(&address, OPEN_MAX)?;
        socket.set_read_timeout(Some(OPEN_MAX))?;
        let request = format!(
            "GET /feed HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        socket.write_all(request.as_bytes())?;
        let mut head = Vec::new();
        // Byte by byte, so that nothing behind the head is taken; the server sends nothing before a
        // command.
        while !head.ends_with(HEAD_END) {
            let mut byte = [0];
            socket.read_exact(&mut byte).context("the handshake")?;
            head.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&head);
        ensure!(head.starts_with("HTTP/1.1 101"), "no WebSocket: {head}");
        Ok(Self {
            socket,
            frames: Frames::new(true),
            node,
            reads,
            watched: Vec::new(),
            last: Vec::new(),
            is_lost: false,
        })
    }

    /// Waits until all watches are in force, and returns their positions.
    fn watch(&mut self) -> anyhow::Result<Positions> {
        let topics = self.watched.iter().map(|topic| (topic.as_str(), None));
        let command = text(&super::watch(topics))?;
        self.socket.write_all(&command)?;
        let mut at = Positions::new();
        let mut input = [0; 4096];
        while at.len() < self.watched.len() {
            let read = self.socket.read(&mut input).context("no response")?;
            ensure!(read > 0, "the server closed the connection");
            self.frames.feed(&input[..read], |frame| {
                if let Frame::Text(text) = frame {
                    let message: Message<'_> = serde_json::from_slice(text)?;
                    ensure!(message.refused.is_empty(), "refused: {:?}", message.refused);
                    at.extend(message.at);
                    at.extend(message.reset);
                }
                Ok(())
            })?;
        }
        self.frames.keep_texts(self.reads);
        self.socket.set_nonblocking(true)?;
        Ok(at)
    }
}

/// The thread of the clients.
struct Loop {
    crowd: Crowd,
    board: Arc<Board>,
    epoll: OwnedFd,
    received: Vec<Received>,
    /// Events that the clients that read still have to get.
    awaited: u64,
}

impl Loop {
    fn new(mut crowd: Crowd, board: Arc<Board>) -> anyhow::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).context("epoll")?;
        let mut awaited = 0;
        for (index, client) in crowd.clients.iter_mut().enumerate() {
            let data = epoll::EventData::new_u64(index as u64);
            epoll::add(&epoll, &client.socket, data, epoll::EventFlags::IN).context("epoll")?;
            client.last.clear();
            for topic in client.watched.iter().filter(|_| client.reads) {
                let picture = board.picture(topic).context("a topic without likes")?;
                let length = client.last.len().max(picture + 1);
                client.last.resize(length, None);
                client.last[picture] = Some(board.before(picture));
                awaited += board.likes_each();
            }
        }
        let received = (0..crowd.nodes()).map(|_| Received::new());
        Ok(Self {
            received: received.collect::<anyhow::Result<_>>()?,
            crowd,
            board,
            epoll,
            awaited,
        })
    }

    fn run(
        mut self,
        likes_are_over: &AtomicBool,
        quiet_max: Duration,
    ) -> anyhow::Result<(Crowd, Vec<Received>)> {
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
                let index = usize::try_from(event.data.u64()).unwrap_or(usize::MAX);
                self.read(index, &mut input)?;
            }
            if !events.is_empty() || !likes_are_over.load(Ordering::Acquire) {
                last_news = Instant::now();
            }
            let is_complete = self.awaited == 0 && likes_are_over.load(Ordering::Acquire);
            if is_complete || last_news.elapsed() > quiet_max {
                break;
            }
        }
        self.note_missing();
        Ok((self.crowd, self.received))
    }

    fn read(&mut self, index: usize, input: &mut [u8]) -> anyhow::Result<()> {
        let client = &mut self.crowd.clients[index];
        let received = &mut self.received[client.node];
        let read = match client.socket.read(input) {
            Ok(read) => read,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                return Ok(());
            }
            Err(_) => 0,
        };
        if read == 0 {
            client.is_lost = true;
            received.lost += 1;
            epoll::delete(&self.epoll, &client.socket).context("epoll")?;
            return Ok(());
        }
        let arrived = Instant::now();
        received.bytes += read as u64;
        let Client {
            frames,
            last,
            socket,
            reads,
            ..
        } = client;
        let (board, awaited) = (&self.board, &mut self.awaited);
        frames.feed(&input[..read], |frame| {
            match frame {
                Frame::Text(text) => {
                    received.frames += 1;
                    if *reads {
                        *awaited -= received.note(text, board, last, arrived)?;
                    }
                }
                // A pong that does not fit is not missed by a server that sends so much.
                Frame::Ping(payload) => drop(socket.write(&pong(payload)?)),
                Frame::Close | Frame::Other => {}
            }
            Ok(())
        })
    }

    /// Counts events that never came.
    fn note_missing(&mut self) {
        for client in self.crowd.clients.iter().filter(|client| client.reads) {
            for (picture, last) in client.last.iter().enumerate() {
                let end = self.board.before(picture) + self.board.likes_each();
                let missing = last.map_or(0, |last| end.saturating_sub(last));
                self.received[client.node].missing += missing;
            }
        }
    }
}

impl Received {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            latency: Histogram::new_with_bounds(1, LATENCY_NS_MAX, DIGITS)
                .context("a histogram")?,
            events: 0,
            missing: 0,
            frames: 0,
            bytes: 0,
            lost: 0,
        })
    }

    /// Counts the events of the board that were new.
    fn note(
        &mut self,
        text: &[u8],
        board: &Board,
        last: &mut [Option<u64>],
        arrived: Instant,
    ) -> anyhow::Result<u64> {
        let message: Message<'_> = serde_json::from_slice(text).context("a message")?;
        let mut new = 0;
        for event in &message.events {
            let picture = board.picture(&event.topic).context("an unknown topic")?;
            let last = last.get_mut(picture).and_then(Option::as_mut);
            let last = last.context("a topic that is not watched")?;
            self.events += 1;
            if event.seq == *last + 1 {
                *last = event.seq;
                new += 1;
            } else {
                self.missing += 1;
            }
            if let Some(nanos) = board.latency(picture, event.seq, arrived) {
                self.latency.saturating_record(nanos);
            }
        }
        Ok(new)
    }
}
