//! One exchange of HTTP/1.1: a request that is sent once, and its response, read to its end.

use std::io::{self, ErrorKind};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::connection::Stream;
use crate::counts::{Failed, Failure};

/// The longest wait for a response.
pub(crate) const RESPONSE_MAX: Duration = Duration::from_secs(10);
const FIELDS_MAX: usize = 64;
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// The fate of a request without a failure.
pub(crate) enum Sent {
    /// Not one byte could be sent on a connection that had served before: it may go on another.
    Nothing,
    /// Its response came; with it the connection ends.
    Last,
    /// Its response came, and the connection goes on.
    Kept,
}

/// The head of a response, and the bytes that came with it.
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) closes: bool,
    length: Option<usize>,
    is_chunked: bool,
    pub(crate) rest: Vec<u8>,
}

/// Sends a request and reads its response, which must be 200 and contain a text.
pub(crate) async fn exchange(
    stream: &mut Stream,
    request: &[u8],
    expected: &str,
    is_reused: bool,
) -> Result<Sent, Failed> {
    if !send(stream, request, is_reused).await? {
        return Ok(Sent::Nothing);
    }
    respond(stream, expected).await
}

/// Sends bytes; returns false if a connection that had served before took none.
async fn send(stream: &mut Stream, bytes: &[u8], is_reused: bool) -> Result<bool, Failed> {
    let mut sent = 0;
    while sent < bytes.len() {
        match timeout(RESPONSE_MAX, stream.write(&bytes[sent..])).await {
            Ok(Ok(count)) if count > 0 => sent += count,
            Ok(Err(_)) if sent == 0 && is_reused => return Ok(false),
            Ok(Err(error)) => {
                let doing = format!("after {sent} of {} bytes were sent", bytes.len());
                return Err(Failed::of(&error, &doing));
            }
            Ok(Ok(_)) | Err(_) => return Err(late("the request is not taken")),
        }
    }
    match stream.flush().await {
        Ok(()) => Ok(true),
        Err(error) => Err(Failed::of(&error, "sending")),
    }
}

/// Reads a response, which must be 200 and contain a text.
pub(crate) async fn respond(stream: &mut Stream, expected: &str) -> Result<Sent, Failed> {
    let read = async {
        let head = read_head(stream).await?;
        let (status, closes) = (head.status, head.closes);
        let body = read_body(stream, head).await?;
        Ok::<_, io::Error>((status, closes, body))
    };
    let (status, closes, body) = match timeout(RESPONSE_MAX, read).await {
        Ok(read) => read.map_err(|error| Failed::of(&error, "reading the response"))?,
        Err(_) => return Err(late("no response")),
    };
    let body = String::from_utf8_lossy(&body);
    if status != 200 || !body.contains(expected) {
        let start: String = body.chars().take(80).collect();
        return Err(Failed(Failure::Wrong, format!("{status} {start:?}")));
    }
    Ok(if closes { Sent::Last } else { Sent::Kept })
}

pub(crate) fn late(what: &str) -> Failed {
    Failed(Failure::Late, format!("{what} in {RESPONSE_MAX:?}"))
}

/// Reads the head of a response.
pub(crate) async fn read_head(stream: &mut Stream) -> io::Result<Head> {
    let mut bytes = Vec::new();
    loop {
        if let Some(head) = parse(&bytes)? {
            return Ok(head);
        }
        if bytes.len() > HEAD_BYTES_MAX || stream.read_buf(&mut bytes).await? == 0 {
            let text = format!("{} bytes of a head", bytes.len());
            return Err(io::Error::new(ErrorKind::UnexpectedEof, text));
        }
    }
}

fn parse(bytes: &[u8]) -> io::Result<Option<Head>> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut response = httparse::Response::new(&mut fields);
    let parsed = response.parse(bytes);
    let parsed = parsed.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
    let httparse::Status::Complete(length) = parsed else {
        return Ok(None);
    };
    let field = |name: &str| {
        let mut fields = response.headers.iter();
        let field = fields.find(|field| field.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(field.value).ok()
    };
    let says = |name, word| field(name).is_some_and(|text| text.eq_ignore_ascii_case(word));
    let is_old = response.version == Some(0) && !says("connection", "keep-alive");
    let length_field = field("content-length").and_then(|text| text.trim().parse().ok());
    let is_chunked = says("transfer-encoding", "chunked");
    Ok(Some(Head {
        status: response.code.unwrap_or(0),
        closes: says("connection", "close") || is_old || (length_field.is_none() && !is_chunked),
        length: length_field,
        is_chunked,
        rest: bytes[length..].to_vec(),
    }))
}

async fn read_body(stream: &mut Stream, head: Head) -> io::Result<Vec<u8>> {
    let mut body = head.rest;
    loop {
        let is_whole = match head.length {
            Some(length) => body.len() >= length,
            None => head.is_chunked && body.ends_with(b"0\r\n\r\n"),
        };
        if is_whole {
            return Ok(body);
        }
        if stream.read_buf(&mut body).await? == 0 {
            if head.length.is_none() && !head.is_chunked {
                return Ok(body);
            }
            let text = format!("{} bytes of a body", body.len());
            return Err(io::Error::new(ErrorKind::UnexpectedEof, text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_says_whether_the_connection_goes_on() {
        let closes = |text: &str| {
            let head = parse(text.as_bytes()).expect("it is valid");
            head.expect("it is whole").closes
        };
        assert!(!closes("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
        assert!(!closes(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        ));
        assert!(closes("HTTP/1.1 200 OK\r\n\r\n"));
        assert!(closes("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"));
        assert!(closes(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        ));
        assert!(parse(b"HTTP/1.1 200 OK\r\n").expect("a start").is_none());
    }
}
