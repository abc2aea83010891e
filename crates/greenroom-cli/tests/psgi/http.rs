//! A client that sends bytes as they are given, each time on a connection of its own.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The time-out of a response; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// The status line and the fields, in lower case.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the value of the first field of this name, in lower case.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines();
        let mut fields = lines.filter_map(|line| line.split_once(": "));
        fields
            .find(|(field, _)| *field == name)
            .map(|(_, value)| value)
    }
}

pub(crate) fn get(address: &str, path: &str) -> Response {
    request(address, "GET", path, &[], b"")
}

pub(crate) fn request(
    address: &str,
    method: &str,
    path: &str,
    fields: &[&str],
    body: &[u8],
) -> Response {
    finish(begin(address, method, path, fields, body))
}

/// Sends a request and does not wait for the response.
pub(crate) fn begin(
    address: &str,
    method: &str,
    path: &str,
    fields: &[&str],
    body: &[u8],
) -> TcpStream {
    let length = format!("Content-Length: {}", body.len());
    let length = (!body.is_empty()).then_some(&*length);
    let line = format!("{method} {path} HTTP/1.1");
    let host = format!("Host: {address}");
    let head = [&*line, &host, "Connection: close"];
    let lines = head.iter().chain(fields).copied().chain(length);
    let head: String = lines.flat_map(|line| [line, "\r\n"]).collect();
    send(address, &[head.as_bytes(), b"\r\n", body].concat())
}

pub(crate) fn send(address: &str, bytes: &[u8]) -> TcpStream {
    let mut connection = TcpStream::connect(address).expect("the program accepts");
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    connection.write_all(bytes).expect("the program reads");
    connection
}

/// Reads the response to the connection's end.
pub(crate) fn finish(mut connection: TcpStream) -> Response {
    let mut bytes = Vec::new();
    connection
        .read_to_end(&mut bytes)
        .expect("the response ends in time");
    parse(&bytes).unwrap_or_else(|| panic!("no response: {:?}", String::from_utf8_lossy(&bytes)))
}

fn parse(bytes: &[u8]) -> Option<Response> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end])
        .ok()?
        .to_ascii_lowercase();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let body = &bytes[end + 4..];
    let is_chunked = head.contains("\r\ntransfer-encoding: chunked");
    let body = if is_chunked {
        joined(body)?
    } else {
        body.to_vec()
    };
    Some(Response { status, head, body })
}

/// Joins the chunks of a complete body; `None` if it is incomplete.
fn joined(mut chunked: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = chunked.windows(2).position(|two| two == b"\r\n")?;
        let size = std::str::from_utf8(&chunked[..end]).ok()?;
        let size = usize::from_str_radix(size, 16).ok()?;
        let rest = &chunked[end + 2..];
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(..size)?);
        chunked = rest.get(size + 2..)?;
    }
}
