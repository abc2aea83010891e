//! Reading one response that has a Content-Length.

use std::io::{Error, ErrorKind, Result};

use tokio::io::{AsyncRead, AsyncReadExt as _};

const FIELDS_MAX: usize = 64;
const RESPONSE_BYTES_MAX: usize = 16 * 1024;

/// The head of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    /// Bytes of head and body.
    pub(crate) bytes: usize,
    /// True if the server keeps the connection.
    pub(crate) keeps: bool,
}

/// Reads to the end of a response. What is no such response is [`ErrorKind::InvalidData`].
pub(crate) async fn read(source: &mut (impl AsyncRead + Unpin)) -> Result<Head> {
    let mut read = Vec::new();
    loop {
        if source.read_buf(&mut read).await? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        match head(&read)? {
            Some(head) if head.bytes == read.len() => return Ok(head),
            Some(head) if head.bytes < read.len() => return Err(invalid("bytes after a response")),
            _ if read.len() > RESPONSE_BYTES_MAX => return Err(invalid("too long a response")),
            _ => {}
        }
    }
}

/// Returns the head, once all of it is there.
fn head(input: &[u8]) -> Result<Option<Head>> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut head = httparse::Response::new(&mut fields);
    let parsed = head
        .parse(input)
        .map_err(|error| invalid(&error.to_string()))?;
    let httparse::Status::Complete(bytes) = parsed else {
        return Ok(None);
    };
    let field = |name: &str| {
        let mut fields = head.headers.iter();
        let field = fields.find(|field| field.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(field.value).ok()
    };
    let length = field("content-length").and_then(|text| text.trim().parse::<usize>().ok());
    let closes = field("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    Ok(Some(Head {
        status: head.code.unwrap_or(0),
        bytes: bytes + length.ok_or_else(|| invalid("no content-length"))?,
        keeps: head.version == Some(1) && !closes,
    }))
}

fn invalid(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

    #[tokio::test]
    async fn a_response_may_come_in_any_two_pieces() {
        for split in 1..RESPONSE.len() {
            let (head, tail) = RESPONSE.split_at(split);
            let head = read(&mut head.chain(tail)).await.expect("a response");
            assert_eq!((head.status, head.keeps), (200, true), "split at {split}");
        }
    }

    #[tokio::test]
    async fn a_response_that_does_not_fit_is_an_error() {
        let kind = async |mut input: &[u8]| read(&mut input).await.map_err(|error| error.kind());
        let short = &RESPONSE[..RESPONSE.len() - 1];
        assert_eq!(kind(short).await, Err(ErrorKind::UnexpectedEof));
        let long = [RESPONSE, b"x"].concat();
        assert_eq!(kind(&long).await, Err(ErrorKind::InvalidData));
        let without_length = b"HTTP/1.1 200 OK\r\n\r\n";
        assert_eq!(kind(without_length).await, Err(ErrorKind::InvalidData));
    }
}
