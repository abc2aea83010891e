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
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// The requests of one client.
struct Shape {
    address: SocketAddr,
    tls: Option<Arc<ClientConfig>>,
    request: String,
    expected: String,
    keeps: bool,
}

/// A response with status 200, and the bytes of its body that were read.
pub(crate) struct Response {
    closes: bool,
    length: usize,
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
        if !stream.send(shape.request.as_bytes(), is_reused).await? {
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

/// Reads a response, whose body must contain a text; tells whether the connection ends.
pub(crate) async fn respond(stream: &mut Stream, expected: &str) -> Result<bool, Failed> {
    let read = async {
        let mut response = Response::begin(stream).await?;
        while response.body.len() < response.length {
            if stream.bytes.read_buf(&mut response.body).await? == 0 {
                let text = format!("{} bytes of a body", response.body.len());
                return Err(Failure::Ended.by(text));
            }
        }
        Ok(response)
    };
    let response = within(RESPONSE_MAX, read).await?;
    let body = String::from_utf8_lossy(&response.body);
    if !body.contains(expected) {
        return Err(Failure::Wrong.by(format!("body {body:?}")));
    }
    Ok(response.closes)
}

/// Returns what the response to an upload contains.
pub(crate) fn uploaded(bytes: usize) -> String {
    format!("\"bytes\":{bytes}")
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
        let psgi = if kind == Kind::Psgi {
            &options.psgi
        } else {
            ""
        };
        let close = if keeps { "" } else { "Connection: close\r\n" };
        let start = if posts { "POST" } else { "GET" }.to_owned() + " " + psgi;
        let fields = format!(" HTTP/1.1\r\nHost: {address}\r\n{close}");
        let (request, expected) = if posts {
            let body = "a".repeat(UPLOAD_BYTES);
            let length = format!("Content-Type: text/plain\r\nContent-Length: {UPLOAD_BYTES}");
            let request = format!("{start}/upload{fields}{length}\r\n\r\n{body}");
            (request, uploaded(UPLOAD_BYTES))
        } else {
            (format!("{start}/hello{fields}\r\n"), HELLO.to_owned())
        };
        Self {
            address,
            tls: is_tls.then(|| Arc::new(client.tls("http/1.1"))),
            request,
            expected,
            keeps,
        }
    }
}

impl Response {
    /// Reads the head, which must have status 200 and Content-Length.
    pub(crate) async fn begin(stream: &mut Stream) -> Result<Self, Failed> {
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            if bytes.len() > HEAD_BYTES_MAX || stream.bytes.read_buf(&mut bytes).await? == 0 {
                return Err(Failure::Ended.by(format!("{} bytes of a head", bytes.len())));
            }
        };
        let body = bytes.split_off(end);
        let head = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        let field = |name| head.lines().find_map(|line| line.strip_prefix(name));
        let length = field("content-length:").and_then(|text| text.trim().parse().ok());
        match length.filter(|_| head.starts_with("http/1.1 200 ")) {
            None => Err(Failure::Wrong.by(format!("{head:?}"))),
            Some(length) => Ok(Self {
                closes: field("connection:").is_some_and(|text| text.trim() == "close"),
                length,
                body,
            }),
        }
    }
}
