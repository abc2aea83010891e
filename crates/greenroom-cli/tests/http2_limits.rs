//! Limits on the memory and the descriptors that clients over HTTP/2 can take from a real process:
//! by opening no window, by staying, and by floods of frames.

mod outside;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use outside::http::{self, HELLO, assert_hello};
use outside::server::Server;
use outside::wait;

/// The time-out of what a test waits for; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_mins(2);

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
/// `END_STREAM | END_HEADERS`.
const WHOLE: u8 = 5;
const ACK: u8 = 1;

struct Client(TcpStream);

impl Client {
    /// Connects, with such a window for each stream.
    fn connect(address: SocketAddr, window: u32) -> Self {
        let stream = TcpStream::connect_timeout(&address, PATIENCE).expect("the server accepts");
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a socket has time-outs");
        let mut settings = vec![0, 4];
        settings.extend(window.to_be_bytes());
        let mut bytes = PREFACE.to_vec();
        bytes.extend(frame(SETTINGS, 0, 0, &settings));
        let mut client = Self(stream);
        client.send(&bytes);
        client
    }

    fn send(&mut self, bytes: &[u8]) {
        // A server that has closed takes nothing.
        let _sent = self.0.write_all(bytes);
    }

    fn get(&mut self, id: u32, path: &str) {
        self.send(&get(id, path));
    }

    /// Returns the next frame's kind, flags and content; settings and pings are acknowledged.
    /// `None` at the end.
    fn next(&mut self) -> Option<(u8, u8, Vec<u8>)> {
        loop {
            let mut header = [0; 9];
            self.0.read_exact(&mut header).ok()?;
            let [a, b, c, kind, flags, ..] = header;
            let mut content = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
            self.0.read_exact(&mut content).ok()?;
            match kind {
                SETTINGS if flags & ACK == 0 => self.send(&frame(SETTINGS, ACK, 0, &[])),
                PING if flags & ACK == 0 => self.send(&frame(PING, ACK, 0, &content)),
                _ => return Some((kind, flags, content)),
            }
        }
    }

    /// Returns the content of a response's frames.
    fn response(&mut self) -> Option<Vec<u8>> {
        let mut received = Vec::new();
        loop {
            let (kind, flags, content) = self.next()?;
            received.extend(content);
            if kind <= HEADERS && flags & 1 != 0 {
                return Some(received);
            }
        }
    }

    /// Returns the kinds of the frames up to the end.
    fn rest(&mut self) -> Vec<u8> {
        let mut kinds = Vec::new();
        while let Some((kind, ..)) = self.next() {
            kinds.push(kind);
        }
        kinds
    }
}

fn frame(kind: u8, flags: u8, id: u32, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).expect("a frame is short");
    let mut frame = length.to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(id.to_be_bytes());
    frame.extend(content);
    frame
}

/// A request, its fields as literals without an index (RFC 7541, 6.2.2).
fn get(id: u32, path: &str) -> Vec<u8> {
    let mut block = Vec::new();
    let fields = [
        (":method", "GET"),
        (":scheme", "http"),
        (":authority", "test"),
        (":path", path),
    ];
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).expect("it is short"));
            block.extend(text.as_bytes());
        }
    }
    frame(HEADERS, WHOLE, id, &block)
}

const FLOODING: usize = 5;
const STREAMS: u32 = 100;
/// The memory that 500 responses of 1 MB may add to the process while no client takes them; with
/// `hyper`'s own buffers it was 340 MiB.
const GROWTH_MAX_KIB: u64 = 24 * 1_024;

#[test]
fn five_hundred_responses_that_nobody_takes_cost_little_and_are_aborted() {
    // Time to look at the process while all are held.
    let mut server = Server::with_flags(&["--write-timeout", "20s"]);
    let address = server.address();
    let baseline = server.descriptors_at_rest();
    let before_kib = server.resident_kib();

    let mut clients: Vec<_> = (0..FLOODING)
        .map(|_| {
            let mut client = Client::connect(address, 0);
            for number in 0..STREAMS {
                client.get(2 * number + 1, "/bytes/1000000");
            }
            client
        })
        .collect();
    // Each has the heads of its responses, so that the bodies are asked for.
    for client in &mut clients {
        let mut heads = 0;
        while heads < STREAMS {
            let (kind, ..) = client.next().expect("each gets its response");
            heads += u32::from(kind == HEADERS);
        }
    }
    let held_kib = server.resident_kib();
    let grown_kib = held_kib.saturating_sub(before_kib);
    assert!(
        grown_kib <= GROWTH_MAX_KIB,
        "grown by {grown_kib} KiB from {before_kib} KiB"
    );
    assert_hello(address);

    let threads: Vec<_> = clients
        .into_iter()
        .map(|mut client| thread::spawn(move || client.rest()))
        .collect();
    for thread in threads {
        let kinds = thread.join().expect("reading does not panic");
        let resets: usize = kinds
            .iter()
            .map(|kind| usize::from(*kind == RST_STREAM))
            .sum();
        assert_eq!(resets, STREAMS as usize);
        assert!(kinds.contains(&GOAWAY));
    }
    let grown_kib = server.resident_kib().saturating_sub(before_kib);
    assert!(grown_kib <= GROWTH_MAX_KIB, "grown by {grown_kib} KiB");
    server.await_descriptors(baseline);
    server.assert_sound();
}

const DESCRIPTORS_MAX: u32 = 256;
const IDLE: usize = 400;
const NEW_CLIENTS: usize = 100;

#[test]
fn idle_connections_that_fill_the_descriptors_keep_no_new_client_out() {
    let mut server = Server::with_descriptors_max(DESCRIPTORS_MAX);
    let address = server.address();
    let baseline = server.descriptors_at_rest();
    let mut idle: Vec<_> = (0..IDLE)
        .map(|number| {
            let mut client = Client::connect(address, 65_535);
            client.get(1, "/hello");
            let first = client.response();
            assert!(first.is_some(), "{number} was not served");
            client
        })
        .collect();
    wait::until(
        "the descriptors are filled",
        PATIENCE,
        || server.descriptors(),
        |descriptors| *descriptors > DESCRIPTORS_MAX as usize / 2,
    );

    let threads: Vec<_> = (0..NEW_CLIENTS)
        .map(|number| {
            thread::spawn(move || {
                if number % 2 == 0 {
                    let response = http::get(address, "/hello", PATIENCE).expect("it is served");
                    assert_eq!((response.status, response.body.as_str()), (200, HELLO));
                    return;
                }
                let mut client = Client::connect(address, 65_535);
                client.get(1, "/hello");
                let response = client.response().expect("it is served");
                assert!(response.ends_with(HELLO.as_bytes()));
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("a new client is served");
    }
    // The one that was idle longest made room, and was told to leave.
    assert!(idle[0].rest().contains(&GOAWAY));
    drop(idle);
    server.await_descriptors(baseline);
    server.assert_sound();
}
