//! A client with an address of its own and the connection that it keeps while the server does.

use std::io::{Error, ErrorKind};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

const HEAD_BYTES_MAX: u64 = 16 * 1024;
const BODY_BYTES_MAX: usize = 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Client {
    source: Ipv4Addr,
    server: SocketAddrV4,
    patience: Duration,
    kept: Option<BufReader<TcpStream>>,
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Client {
    pub(crate) fn new(source: Ipv4Addr, server: SocketAddrV4, patience: Duration) -> Self {
        Self {
            source,
            server,
            patience,
            kept: None,
        }
    }

    /// Asks for a path.
    ///
    /// # Errors
    /// If no whole response comes in time.
    pub(crate) async fn ask(&mut self, path: &str) -> Result<Response, Error> {
        timeout(self.patience, self.exchange(path)).await?
    }

    async fn exchange(&mut self, path: &str) -> Result<Response, Error> {
        if let Some(stream) = self.kept.take() {
            // The server may close a kept connection at any time: then it is asked on another.
            if let Ok(response) = self.exchange_on(stream, path).await {
                return Ok(response);
            }
        }
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddrV4::new(self.source, 0).into())?;
        let stream = socket.connect(self.server.into()).await?;
        stream.set_nodelay(true)?;
        self.exchange_on(BufReader::new(stream), path).await
    }

    async fn exchange_on(
        &mut self,
        mut stream: BufReader<TcpStream>,
        path: &str,
    ) -> Result<Response, Error> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.server);
        stream.write_all(request.as_bytes()).await?;
        let mut head = String::new();
        let mut limited = (&mut stream).take(HEAD_BYTES_MAX);
        while !head.ends_with("\r\n\r\n") {
            if limited.read_line(&mut head).await? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        let mut response = Response::parse(head).ok_or(ErrorKind::InvalidData)?;
        stream.read_exact(&mut response.body).await?;
        let closes = response.field("connection");
        if !closes.is_some_and(|value| value.eq_ignore_ascii_case("close")) {
            self.kept = Some(stream);
        }
        Ok(response)
    }
}

impl Response {
    /// Parses a head; the body has its length, and no content yet.
    fn parse(head: String) -> Option<Self> {
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let mut response = Self {
            status,
            head,
            body: Vec::new(),
        };
        let bytes: usize = response.field("content-length")?.parse().ok()?;
        response.body = vec![0; Some(bytes).filter(|bytes| *bytes <= BODY_BYTES_MAX)?];
        Some(response)
    }

    /// Returns the value of a field of its head.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = fields.find(|(field, _)| field.eq_ignore_ascii_case(name))?;
        Some(value.trim())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_tells_status_and_length() {
        let head = "HTTP/1.1 503 Busy\r\ncontent-length: 5\r\nRetry-After: 1\r\n\r\n";
        let response = Response::parse(head.to_owned()).expect("whole");
        assert_eq!((response.status, response.body.len()), (503, 5));
        assert_eq!(response.field("retry-after"), Some("1"));
        assert!(Response::parse("HTTP/1.1 200 OK\r\n\r\n".to_owned()).is_none());
        let head = "HTTP/1.1 200 OK\r\ncontent-length: 9999999999\r\n\r\n";
        assert!(Response::parse(head.to_owned()).is_none());
    }
}
