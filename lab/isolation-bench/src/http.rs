//! A single request, for values that a load generator does not report.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, bail};

const TIMEOUT: Duration = Duration::from_secs(5);

/// A response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Response {
    /// The value of a field of its head.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = fields.find(|(field, _)| field.eq_ignore_ascii_case(name))?;
        Some(value.trim())
    }
}

/// Sends a request on a connection of its own, which the server closes after its response.
pub(crate) fn get(server: SocketAddr, path: &str) -> anyhow::Result<Response> {
    let mut stream = TcpStream::connect(server).context("connect")?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text).context("response")?;
    parse(&text)
}

fn parse(text: &str) -> anyhow::Result<Response> {
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        bail!("the response breaks off: {text:?}");
    };
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    Ok(Response {
        status: status.with_context(|| format!("no status: {head:?}"))?,
        head: head.to_owned(),
        body: body.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_whatever_their_case() {
        let response = parse("HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n\r\nbusy\n");
        let response = response.expect("a response");
        assert_eq!(
            (response.status, response.field("Retry-After")),
            (503, Some("1"))
        );
        assert_eq!(response.body, "busy\n");
        assert!(parse("HTTP/1.1 503 Serv").is_err());
    }
}
