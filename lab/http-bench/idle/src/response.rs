//! Reading one response that has a Content-Length.

use std::io::Read;

use anyhow::{Context, bail, ensure};

const FIELDS_MAX: usize = 64;
const RESPONSE_BYTES_MAX: usize = 16 * 1024;

/// Reads to the end of a response, which must be a 200 on a connection that stays.
pub(crate) fn read(source: &mut impl Read) -> anyhow::Result<()> {
    let mut response = [0; RESPONSE_BYTES_MAX];
    let mut filled = 0;
    loop {
        let received = source.read(&mut response[filled..]).context("read")?;
        ensure!(received > 0, "the connection ended before its response");
        filled += received;
        match length(&response[..filled])? {
            Some(length) if length == filled => return Ok(()),
            Some(length) => ensure!(length > filled, "bytes after the end of the response"),
            None => {}
        }
    }
}

/// Returns the bytes of head and body, once the head is there.
fn length(input: &[u8]) -> anyhow::Result<Option<usize>> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut head = httparse::Response::new(&mut fields);
    let httparse::Status::Complete(bytes) = head.parse(input).context("not an HTTP response")?
    else {
        return Ok(None);
    };
    ensure!(head.code == Some(200), "status {:?}", head.code);
    let keeps = head.version == Some(1) && field(head.headers, "connection") != Some(b"close");
    ensure!(keeps, "the server does not keep the connection");
    let Some(length) = field(head.headers, "content-length") else {
        bail!("a response without content-length, which this client needs");
    };
    let length: usize = std::str::from_utf8(length)?.trim().parse()?;
    Ok(Some(bytes + length))
}

fn field<'a>(fields: &[httparse::Header<'a>], name: &str) -> Option<&'a [u8]> {
    let field = fields
        .iter()
        .find(|field| field.name.eq_ignore_ascii_case(name));
    field.map(|field| field.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

    #[test]
    fn a_response_may_come_in_any_two_pieces() {
        for split in 1..RESPONSE.len() {
            let (head, tail) = RESPONSE.split_at(split);
            assert!(read(&mut head.chain(tail)).is_ok(), "split at {split}");
        }
    }

    #[test]
    fn a_response_that_does_not_fit_is_an_error() {
        assert!(read(&mut &RESPONSE[..RESPONSE.len() - 1]).is_err());
        assert!(read(&mut &[RESPONSE, b"x"].concat()[..]).is_err());
        assert!(read(&mut &b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"[..]).is_err());
    }
}
