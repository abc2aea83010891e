//! Clients of HTTP/1.1 that keep their connections, or have one for each request. They send
//! nothing twice.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use tokio::io::AsyncReadExt;

use crate::HELLO;
use crate::failure::{Failed, Failure, within};
use crate::kind::Kind;
use crate::load::{Client, TRIES_MAX};
use crate::tcp::{RESPONSE_MAX, Stream};

/// The body of an upload at once.
pub(crate) const UPLOAD_BYTES: usize = 16_000;
/// The pause of a client that asks again and again.
pub(crate) const BUSY: Duration = Duration::from_millis(50);
/// The pause of a client that is idle most of the time, as a browser is.
const SELDOM: Duration = Duration::from_secs(2);
const FIELDS_MAX: usize = 64;
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// The requests of one client.
struct Shape {
    address: SocketAddr,
    tls: Option<Arc<ClientConfig>>,
    request: Vec<u8>,
    expected: String,
    keeps: bool,
}

/// The head of a response, and the bytes of its body that were read.
pub(crate) struct Head {
    pub(crate) status: u16,
    closes: bool,
    length: Option<usize>,
    is_chunked: bool,
    pub(crate) body: Vec<u8>,
}

/// Sends requests until the load ends.
pub(crate) async fn run(client: &Client) {
    let shape = Shape::of(client);
    let is_seldom = client.kind == Kind::Seldom;
    let mut kept = None;
    let once = async || once(client, &shape, &mut kept).await;
    client
        .repeat(if is_seldom { SELDOM } else { BUSY }, once)
        .await;
}

async fn once(client: &Client, shape: &Shape, kept: &mut Option<Stream>) -> Result<(), Failed> {
    for _ in 0..TRIES_MAX {
        let mut reused = kept.take();
        if let Some(stream) = &mut reused
            && stream.has_ended().await
        {
            client.add("reopened");
            reused = None;
        }
        let is_reused = reused.is_some();
        let mut stream = match reused {
            Some(stream) => stream,
            None => Stream::open(shape.address, shape.tls.as_ref(), None).await?,
        };
        if !stream.send(&shape.request, is_reused).await? {
            client.add("reopened");
            continue;
        }
        let closes = respond(&mut stream, &shape.expected).await?;
        match (shape.keeps, closes) {
            (true, true) => drop(client.add("reopened")),
            (true, false) => *kept = Some(stream),
            (false, _) => {}
        }
        return Ok(());
    }
    Err(Failure::Refused.by(format!("{TRIES_MAX} connections ended before they took it")))
}

/// Reads a response, which must be 200 and contain a text; tells whether the connection ends.
pub(crate) async fn respond(stream: &mut Stream, expected: &str) -> Result<bool, Failed> {
    let read = async {
        let mut head = Head::read(stream).await?;
        while !head.is_whole() {
            if stream.bytes.read_buf(&mut head.body).await? == 0 {
                if head.length.is_none() && !head.is_chunked {
                    break;
                }
                let text = format!("{} bytes of a body", head.body.len());
                return Err(Failure::Ended.by(text));
            }
        }
        Ok(head)
    };
    let head = within(RESPONSE_MAX, read).await?;
    let body = String::from_utf8_lossy(&head.body);
    if head.status != 200 || !body.contains(expected) {
        let start: String = body.chars().take(80).collect();
        return Err(Failure::Wrong.by(format!("{} {start:?}", head.status)));
    }
    Ok(head.closes)
}

impl Shape {
    fn of(client: &Client) -> Self {
        let (kind, options) = (client.kind, &client.options);
        let is_odd = client.index % 2 == 1;
        let is_tls = kind == Kind::Tls;
        let posts = kind == Kind::Post || (kind == Kind::Psgi && is_odd);
        // One TLS client in two has a connection, and so a handshake, for each request.
        let keeps = kind != Kind::Close && !(is_tls && is_odd);
        let address = if is_tls { options.tls } else { options.plain };
        let (method, path, body) = if posts {
            ("POST", "/upload", "a".repeat(UPLOAD_BYTES))
        } else {
            ("GET", "/hello", String::new())
        };
        let psgi = (kind == Kind::Psgi).then_some(options.psgi.as_str());
        let close = (!keeps).then_some("Connection: close\r\n");
        let length = posts
            .then(|| format!("Content-Type: text/plain\r\nContent-Length: {UPLOAD_BYTES}\r\n"));
        let request = format!(
            "{method} {}{path} HTTP/1.1\r\nHost: {address}\r\n{}{}\r\n{body}",
            psgi.unwrap_or_default(),
            close.unwrap_or_default(),
            length.unwrap_or_default()
        );
        Self {
            address,
            tls: is_tls.then(|| Arc::new(client.tls("http/1.1"))),
            request: request.into_bytes(),
            expected: if posts {
                uploaded(UPLOAD_BYTES)
            } else {
                HELLO.to_owned()
            },
            keeps,
        }
    }
}

/// Returns what the response to an upload contains.
pub(crate) fn uploaded(bytes: usize) -> String {
    format!("\"bytes\":{bytes}")
}

impl Head {
    /// Reads the head of a response.
    pub(crate) async fn read(stream: &mut Stream) -> Result<Self, Failed> {
        let mut bytes = Vec::new();
        loop {
            if let Some(head) = Self::parse(&bytes)? {
                return Ok(head);
            }
            if bytes.len() > HEAD_BYTES_MAX || stream.bytes.read_buf(&mut bytes).await? == 0 {
                return Err(Failure::Ended.by(format!("{} bytes of a head", bytes.len())));
            }
        }
    }

    fn parse(bytes: &[u8]) -> Result<Option<Self>, Failed> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut response = httparse::Response::new(&mut fields);
        let parsed = response
            .parse(bytes)
            .map_err(|error| Failure::Wrong.by(error))?;
        let httparse::Status::Complete(end) = parsed else {
            return Ok(None);
        };
        let field = |name: &str| {
            let mut fields = response.headers.iter();
            let field = fields.find(|field| field.name.eq_ignore_ascii_case(name))?;
            std::str::from_utf8(field.value).ok()
        };
        let says = |name, word| field(name).is_some_and(|text| text.eq_ignore_ascii_case(word));
        let is_old = response.version == Some(0) && !says("connection", "keep-alive");
        let length = field("content-length").and_then(|text| text.trim().parse().ok());
        let is_chunked = says("transfer-encoding", "chunked");
        let is_endless = length.is_none() && !is_chunked;
        Ok(Some(Self {
            status: response.code.unwrap_or(0),
            closes: says("connection", "close") || is_old || is_endless,
            length,
            is_chunked,
            body: bytes[end..].to_vec(),
        }))
    }

    fn is_whole(&self) -> bool {
        match self.length {
            Some(length) => self.body.len() >= length,
            None => self.is_chunked && self.body.ends_with(b"0\r\n\r\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_says_whether_the_connection_goes_on() {
        let closes = |text: &str| {
            let head = Head::parse(text.as_bytes()).expect("it is valid");
            head.expect("it is whole").closes
        };
        assert!(!closes("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
        assert!(!closes(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        ));
        assert!(closes("HTTP/1.1 200 OK\r\n\r\n"));
        assert!(closes("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"));
        let last = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        assert!(closes(last));
        assert!(
            Head::parse(b"HTTP/1.1 200 OK\r\n")
                .expect("a start")
                .is_none()
        );
    }
}
