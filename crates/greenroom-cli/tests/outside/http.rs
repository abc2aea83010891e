//! The plainest client there is, for the requests around those of the foreign ones.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

pub(crate) const HELLO: &str = "Hello, world!\n";

/// The server's default body limit.
pub(crate) const BODY_BYTES_MAX: usize = 2 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// Sends a request on a connection of its own and reads to its end, all before the deadline.
pub(crate) fn get(address: SocketAddr, path: &str, deadline: Duration) -> io::Result<Response> {
    let begin = Instant::now();
    let mut stream = TcpStream::connect_timeout(&address, deadline)?;
    stream.write_all(request(address, path, "close").as_bytes())?;
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let left = deadline.saturating_sub(begin.elapsed());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece)? {
            0 => return parse(&bytes),
            length => bytes.extend_from_slice(&piece[..length]),
        }
    }
}

pub(crate) fn request(address: SocketAddr, path: &str, connection: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: {connection}\r\n\r\n")
}

/// Asserts that `/hello` gets its response.
pub(crate) fn assert_hello(address: SocketAddr) {
    let response =
        get(address, "/hello", Duration::from_secs(2)).expect("/hello gets its response");
    assert_eq!((response.status, response.body.as_str()), (200, HELLO));
}

fn parse(bytes: &[u8]) -> io::Result<Response> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text
        .split_once("\r\n\r\n")
        .ok_or_else(|| io::Error::other(format!("no complete head in {text:?}")))?;
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .ok_or_else(|| io::Error::other(format!("no status in {head:?}")))?;
    Ok(Response {
        status,
        body: body.to_owned(),
    })
}
