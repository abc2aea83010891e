//! A fixed number of requests on keep-alive connections, by one thread that only waits for the
//! next response in turn: under valgrind the server is the slower side by far.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};

/// The longest wait for a response, under valgrind and beside other work.
const TIMEOUT: Duration = Duration::from_mins(1);
/// The longest response, in bytes.
const RESPONSE_BYTES_MAX: usize = 4 * 1024;

/// The shape of a load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) connections: usize,
    /// Requests of a connection in one write.
    pub(crate) in_flight: usize,
    /// Fields after `Host`, each with its end of line.
    pub(crate) fields: &'static str,
    /// Time from a response to the next request. Without one, whether a server that looks for more
    /// input finds the next request there depends on the machine.
    pub(crate) pause: Duration,
    /// Requests of a short run, which is enough for a route to find its place, and of a long one.
    pub(crate) requests: [usize; 2],
}

impl Load {
    /// Sends so many requests, rounded down to full turns of all connections, and returns their
    /// number. Each connection is written to as soon as its responses are there.
    ///
    /// # Errors
    /// If the server ends, is silent, or responds with anything but 200 and one length.
    pub(crate) fn send(&self, port: u16, requests: usize) -> anyhow::Result<usize> {
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        let request = self.request(address);
        let mut connections = (0..self.connections)
            .map(|_| connect(address))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let length = response_length(&mut connections[0], &request)?;
        let (batch, mut responses) = (
            request.repeat(self.in_flight),
            vec![0; length * self.in_flight],
        );
        for connection in &mut connections {
            connection.write_all(&batch)?;
        }
        let turns = requests / (self.connections * self.in_flight);
        for turn in 1..=turns {
            for connection in &mut connections {
                let read = connection.read_exact(&mut responses);
                read.context("reading responses")?;
                for response in responses.chunks_exact(length) {
                    ensure!(is_good(response), "a response is not 200, or not as long");
                }
                if turn < turns {
                    if !self.pause.is_zero() {
                        thread::sleep(self.pause);
                    }
                    connection.write_all(&batch)?;
                }
            }
        }
        Ok(turns * self.connections * self.in_flight)
    }

    fn request(&self, address: SocketAddrV4) -> Vec<u8> {
        let Self { fields, .. } = self;
        format!("GET /hello HTTP/1.1\r\nHost: {address}\r\n{fields}\r\n").into_bytes()
    }
}

fn connect(address: SocketAddrV4) -> anyhow::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address.into(), TIMEOUT)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    Ok(stream)
}

/// Has one response, and returns its length.
fn response_length(stream: &mut TcpStream, request: &[u8]) -> anyhow::Result<usize> {
    stream.write_all(request)?;
    let mut response = [0; RESPONSE_BYTES_MAX];
    let mut filled = 0;
    loop {
        let read = stream.read(&mut response[filled..])?;
        ensure!(read > 0, "the first response is not whole");
        filled += read;
        if let Some(length) = whole_length(&response[..filled])? {
            ensure!(length == filled, "bytes follow the first response");
            ensure!(is_good(&response[..filled]), "the first response is no 200");
            return Ok(length);
        }
    }
}

/// Returns the length of a response with a Content-Length, once all of it is there.
fn whole_length(response: &[u8]) -> anyhow::Result<Option<usize>> {
    let mut fields = [httparse::EMPTY_HEADER; 16];
    let mut head = httparse::Response::new(&mut fields);
    let httparse::Status::Complete(head_bytes) = head.parse(response)? else {
        return Ok(None);
    };
    let mut fields = head.headers.iter();
    let length = fields.find(|field| field.name.eq_ignore_ascii_case("content-length"));
    let length = length.context("a response without Content-Length")?.value;
    let whole = head_bytes + std::str::from_utf8(length)?.trim().parse::<usize>()?;
    Ok((whole <= response.len()).then_some(whole))
}

fn is_good(response: &[u8]) -> bool {
    response.starts_with(b"HTTP/1.1 200 ") && response.ends_with(b"Hello, world!")
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 13\r\n\r\nHello, world!";

    #[test]
    fn a_response_is_whole_with_its_body() {
        let (part, whole) = (&RESPONSE[..RESPONSE.len() - 1], RESPONSE);
        assert_eq!(whole_length(part).expect("well-formed"), None);
        let length = whole_length(whole).expect("well-formed");
        assert_eq!(length, Some(RESPONSE.len()));
        assert!(whole_length(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }

    #[test]
    fn all_requests_are_sent_and_a_wrong_response_is_an_error() {
        let served = |response: &'static [u8]| {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
            let port = listener.local_addr().expect("bound").port();
            let load = Load {
                connections: 1,
                in_flight: 2,
                fields: "",
                pause: Duration::ZERO,
                requests: [0, 0],
            };
            let server = thread::spawn(move || serve(&listener, response));
            let sent = load.send(port, 7);
            (sent, server.join().expect("no panic"))
        };
        let (sent, heads) = served(RESPONSE);
        // One before, by which the length is known.
        assert_eq!((sent.expect("all good"), heads), (6, 7));
        let (sent, _) = served(b"HTTP/1.1 503 No\r\ncontent-length: 13\r\n\r\nHello, world!");
        assert!(sent.is_err());
    }

    /// Responds to each head of one connection, and returns their number.
    fn serve(listener: &TcpListener, response: &[u8]) -> usize {
        let (mut stream, _) = listener.accept().expect("a connection");
        let (mut heads, mut last, mut byte) = (0, [0; 4], [0]);
        while stream.read(&mut byte).is_ok_and(|read| read > 0) {
            last.rotate_left(1);
            last[3] = byte[0];
            if last == *b"\r\n\r\n" {
                heads += 1;
                // A client that has seen enough may be gone.
                let _ = stream.write_all(response);
            }
        }
        heads
    }
}
