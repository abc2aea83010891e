//! A client that writes and reads bytes, and knows just enough of HTTP/1.1 to see where a response
//! ends.

use std::net::SocketAddr;
use std::path::Path;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use crate::over;

pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin {}
impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

pub(crate) struct Client {
    stream: Box<dyn Stream>,
    read: Vec<u8>,
}

/// A response, taken apart.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: String,
}

impl Response {
    /// The value of a field, if it is there once.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut found = self.head.lines().filter_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then_some(value.trim())
        });
        let value = found.next();
        assert!(found.next().is_none(), "{name} is repeated: {}", self.head);
        value
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn closes(&self) -> bool {
        self.field("connection") == Some("close")
    }
}

impl Client {
    pub(crate) async fn unix(path: &Path) -> Self {
        Self::of(over::client(UnixStream::connect(path).await.unwrap()).await)
    }

    pub(crate) async fn tcp(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).await.unwrap())
    }

    pub(crate) fn over(stream: impl AsyncRead + AsyncWrite + Unpin + 'static) -> Self {
        Self::of(Box::new(stream))
    }

    pub(crate) fn of(stream: Box<dyn Stream>) -> Self {
        Self {
            stream,
            read: Vec::new(),
        }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    /// Sends as far as the server takes it: false if it takes no more because it closed.
    pub(crate) async fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).await.is_ok() && self.stream.flush().await.is_ok()
    }

    /// One write: how many bytes the system took.
    pub(crate) async fn write_some(&mut self, bytes: &[u8]) -> usize {
        self.stream.write(bytes).await.unwrap()
    }

    /// A GET without anything special, and its response.
    pub(crate) async fn get(&mut self, path: &str) -> Response {
        self.send(get(path)).await;
        self.response().await
    }

    /// Ends this side of the connection.
    pub(crate) async fn end(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// Everything up to the end of the connection.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        while self.more().await {}
        std::mem::take(&mut self.read)
    }

    /// Reads at most `bytes` more.
    pub(crate) async fn read_up_to(&mut self, bytes: usize) -> Vec<u8> {
        if self.read.is_empty() {
            self.more().await;
        }
        let bytes = bytes.min(self.read.len());
        self.read.drain(..bytes).collect()
    }

    pub(crate) async fn read_exactly(&mut self, bytes: usize) -> Vec<u8> {
        while self.read.len() < bytes {
            assert!(self.more().await, "the connection ended early");
        }
        self.read.drain(..bytes).collect()
    }

    /// Returns `true` if the server ended the connection without another byte.
    pub(crate) async fn is_closed(&mut self) -> bool {
        self.read.is_empty() && !self.more().await
    }

    /// The next response, to a request that was not HEAD.
    pub(crate) async fn response(&mut self) -> Response {
        let (status, head) = self.head().await;
        let mut response = Response {
            status,
            head,
            body: Vec::new(),
            trailers: String::new(),
        };
        if status == 204 || status == 304 {
            return response;
        }
        if let Some(length) = response.field("content-length") {
            response.body = self.read_exactly(length.parse().unwrap()).await;
        } else if response.field("transfer-encoding") == Some("chunked") {
            (response.body, response.trailers) = self.chunks().await;
        } else {
            response.body = self.rest().await;
        }
        response
    }

    /// The head of the next response: its status and all of it.
    pub(crate) async fn head(&mut self) -> (u16, String) {
        let head = self.until(b"\r\n\r\n").await;
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head)
    }

    async fn chunks(&mut self) -> (Vec<u8>, String) {
        let mut body = Vec::new();
        loop {
            let size = self.until(b"\r\n").await;
            let size = usize::from_str_radix(size.trim(), 16).unwrap();
            if size == 0 {
                break;
            }
            body.extend(self.read_exactly(size).await);
            assert_eq!(self.read_exactly(2).await, b"\r\n");
        }
        let mut trailers = String::new();
        loop {
            let line = self.until(b"\r\n").await;
            if line == "\r\n" {
                return (body, trailers);
            }
            trailers += &line;
        }
    }

    async fn until(&mut self, end: &[u8]) -> String {
        loop {
            let found = self.read.windows(end.len()).position(|some| some == end);
            if let Some(at) = found {
                let line = self.read.drain(..at + end.len()).collect();
                return String::from_utf8(line).unwrap();
            }
            assert!(
                self.more().await,
                "the connection ended after {:?}",
                String::from_utf8_lossy(&self.read)
            );
        }
    }

    async fn more(&mut self) -> bool {
        self.read.reserve(64 * 1_024);
        // A reset is an end too: what matters is what came before it.
        self.stream.read_buf(&mut self.read).await.unwrap_or(0) > 0
    }
}

pub(crate) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n")
}

/// The head of a POST with these fields.
pub(crate) fn post(path: &str, fields: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: test\r\n{fields}\r\n")
}
