//! Clients that `greenroom bench` does not have: each with an address of its own, and such as try
//! again when they were rejected.
//!
//! Each group of them runs on one thread, at the usual priority, to an end that is given in time or
//! in count.

mod crowd;
mod polite;

use std::io::{Error, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Builder;
use tokio::time::timeout;

pub(crate) use crowd::{Counts, Crowd, Wave};
pub(crate) use polite::{Polite, Summary};

/// Seconds after which a client has gone.
const TIMEOUT: Duration = Duration::from_secs(2);
const HEAD_BYTES_MAX: usize = 16 * 1024;
const BODY_BYTES_MAX: usize = 1024 * 1024;
const READ_BYTES: usize = 16 * 1024;

/// A client, and the connection that it keeps while the server does.
struct Client {
    source: Ipv4Addr,
    server: SocketAddr,
    request: Vec<u8>,
    stream: Option<TcpStream>,
    timeout: Duration,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Responded(u16),
    /// Reset, timed out, or no HTTP.
    Failed,
}

/// The head of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    body_bytes: usize,
    closes: bool,
}

/// Addresses of the network 127.0.`third`.0, from .1 on.
pub(crate) fn addresses(third: u8, count: u8) -> Vec<Ipv4Addr> {
    let address = |last| Ipv4Addr::new(127, 0, third, last);
    (1..=count).map(address).collect()
}

/// Runs what these clients do on this thread.
///
/// # Errors
/// When the kernel refuses an epoll instance.
pub(crate) fn run<T>(clients: impl Future<Output = T>) -> anyhow::Result<T> {
    let runtime = Builder::new_current_thread().enable_all().build();
    Ok(runtime.context("epoll")?.block_on(clients))
}

impl Client {
    fn new(source: Ipv4Addr, server: SocketAddr, path: &str) -> Self {
        Self {
            source,
            server,
            request: format!("GET {path} HTTP/1.1\r\nHost: {server}\r\n\r\n").into_bytes(),
            stream: None,
            timeout: TIMEOUT,
        }
    }

    async fn ask(&mut self) -> Outcome {
        match timeout(self.timeout, self.exchange()).await {
            Ok(Ok(status)) => Outcome::Responded(status),
            Ok(Err(_)) | Err(_) => Outcome::Failed,
        }
    }

    async fn exchange(&mut self) -> Result<u16, Error> {
        if let Some(stream) = self.stream.take() {
            match self.exchange_on(stream).await {
                // The server may end a connection that is kept at any time: a client asks again on
                // another.
                Err(error) if is_closed(&error) => {}
                result => return result,
            }
        }
        let stream = connect(self.source, self.server).await?;
        self.exchange_on(stream).await
    }

    async fn exchange_on(&mut self, mut stream: TcpStream) -> Result<u16, Error> {
        stream.write_all(&self.request).await?;
        let head = read_response(&mut stream).await?;
        if !head.closes {
            self.stream = Some(stream);
        }
        Ok(head.status)
    }
}

async fn connect(source: Ipv4Addr, server: SocketAddr) -> Result<TcpStream, Error> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddrV4::new(source, 0).into())?;
    let stream = socket.connect(server).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// To the end of its body.
async fn read_response(stream: &mut TcpStream) -> Result<Head, Error> {
    let mut read = Vec::with_capacity(READ_BYTES);
    loop {
        if let Some((head, head_bytes)) = parse(&read)? {
            let mut missing = (head_bytes + head.body_bytes).saturating_sub(read.len());
            while missing > 0 {
                read.clear();
                missing = missing.saturating_sub(read_some(stream, &mut read).await?);
            }
            return Ok(head);
        }
        read_some(stream, &mut read).await?;
    }
}

async fn read_some(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<usize, Error> {
    match stream.read_buf(buffer).await? {
        0 => Err(ErrorKind::UnexpectedEof.into()),
        bytes => Ok(bytes),
    }
}

fn is_closed(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof
    )
}

/// The head and its length, once all of it is there.
fn parse(read: &[u8]) -> Result<Option<(Head, usize)>, Error> {
    let malformed = || Error::from(ErrorKind::InvalidData);
    let Some(end) = read.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
        let is_too_long = read.len() > HEAD_BYTES_MAX;
        return if is_too_long {
            Err(malformed())
        } else {
            Ok(None)
        };
    };
    let text = str::from_utf8(&read[..end]).map_err(|_| malformed())?;
    let status = text
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let body_bytes = field(text, "content-length").and_then(|bytes| bytes.parse().ok());
    let head = Head {
        status: status.ok_or_else(malformed)?,
        body_bytes: body_bytes
            .filter(|bytes| *bytes <= BODY_BYTES_MAX)
            .ok_or_else(malformed)?,
        closes: field(text, "connection").is_some_and(|value| value.eq_ignore_ascii_case("close")),
    };
    Ok(Some((head, end + 4)))
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = fields.find(|(field, _)| field.eq_ignore_ascii_case(name))?;
    Some(value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_tells_how_long_the_body_is() {
        let text = b"HTTP/1.1 503 Busy\r\ncontent-length: 5\r\nConnection: Close\r\n\r\nbusy\n";
        let (head, bytes) = parse(text).expect("HTTP").expect("a whole head");
        let expected = Head {
            status: 503,
            body_bytes: 5,
            closes: true,
        };
        assert_eq!((head, bytes), (expected, text.len() - 5));
        assert_eq!(parse(&text[..20]).expect("HTTP"), None);
        assert!(parse(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
