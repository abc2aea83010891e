//! Reading one response that has a Content-Length.

use std::io::Read;

use anyhow::{Context, bail, ensure};

const FIELDS_MAX: usize = 64;
const RESPONSE_BYTES_MAX: usize = 16 * 1024;

/// The head of a response, once it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its status.
    pub status: u16,
    /// Bytes of head and body.
    pub bytes: usize,
    /// True if the server keeps the connection.
    pub keeps: bool,
}

/// Reads to the end of a response, which must be a 200 on a connection that stays.
///
/// # Errors
/// When it is another, or breaks off.
pub fn read(source: &mut impl Read) -> anyhow::Result<()> {
    let mut response = [0; RESPONSE_BYTES_MAX];
    let mut filled = 0;
    loop {
        let received = source.read(&mut response[filled..]).context("read")?;
        ensure!(received > 0, "the connection ended before its response");
        filled += received;
        let Some(head) = head(&response[..filled])? else {
            continue;
        };
        ensure!(head.status == 200, "status {}", head.status);
        ensure!(head.keeps, "the server does not keep the connection");
        ensure!(head.bytes >= filled, "bytes after the end of the response");
        if head.bytes == filled {
            return Ok(());
        }
    }
}

/// Checks a whole response, which must be a 200.
///
/// # Errors
/// When it is another, or something is missing or left over.
pub fn check(whole: &[u8]) -> anyhow::Result<()> {
    let head = head(whole)?.context("the connection ended before its response")?;
    ensure!(head.status == 200, "status {}", head.status);
    ensure!(
        head.bytes == whole.len(),
        "a response of {} bytes, not {}",
        whole.len(),
        head.bytes
    );
    Ok(())
}

/// The head, once all of it is there.
///
/// # Errors
/// When it is no head of HTTP, or has no Content-Length.
pub fn head(input: &[u8]) -> anyhow::Result<Option<Head>> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut head = httparse::Response::new(&mut fields);
    let httparse::Status::Complete(bytes) = head.parse(input).context("not an HTTP response")?
    else {
        return Ok(None);
    };
    let closes =
        field(head.headers, "connection").is_some_and(|value| value.eq_ignore_ascii_case(b"close"));
    let Some(length) = field(head.headers, "content-length") else {
        bail!("a response without content-length, which this client needs");
    };
    let length: usize = std::str::from_utf8(length)?.trim().parse()?;
    Ok(Some(Head {
        status: head.code.context("a response without a status")?,
        bytes: bytes + length,
        keeps: head.version == Some(1) && !closes,
    }))
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
    fn a_whole_response_is_a_200_of_its_length() {
        assert!(check(RESPONSE).is_ok());
        assert!(check(&RESPONSE[..RESPONSE.len() - 1]).is_err());
        assert!(check(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n").is_err());
    }

    #[test]
    fn a_response_that_does_not_fit_is_an_error() {
        assert!(read(&mut &RESPONSE[..RESPONSE.len() - 1]).is_err());
        assert!(read(&mut &[RESPONSE, b"x"].concat()[..]).is_err());
        assert!(read(&mut &b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"[..]).is_err());
    }
}
