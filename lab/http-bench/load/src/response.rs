//! Finding the end of a response that has a Content-Length.

use anyhow::{Context, bail, ensure};

const FIELDS_MAX: usize = 64;
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Reads one response after the other.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    partial_head: Vec<u8>,
    body: Option<Body>,
}

#[derive(Debug)]
struct Body {
    remaining: usize,
    complete: Complete,
}

/// A response that has arrived in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Complete {
    pub(crate) status: u16,
    pub(crate) keep_alive: bool,
}

impl Reader {
    /// Takes the next bytes; `Some` once the response is complete.
    pub(crate) fn feed(&mut self, input: &[u8]) -> anyhow::Result<Option<Complete>> {
        if let Some(body) = self.body.take() {
            return self.feed_body(input.len(), body);
        }
        let parsed = if self.partial_head.is_empty() {
            parse_head(input)?
        } else {
            self.partial_head.extend_from_slice(input);
            parse_head(&self.partial_head)?
        };
        let Some((head_bytes, body)) = parsed else {
            return self.keep_partial(input);
        };
        let available = self.partial_head.len().max(input.len()) - head_bytes;
        self.partial_head.clear();
        self.feed_body(available, body)
    }

    fn keep_partial(&mut self, input: &[u8]) -> anyhow::Result<Option<Complete>> {
        if self.partial_head.is_empty() {
            self.partial_head.extend_from_slice(input);
        }
        ensure!(
            self.partial_head.len() <= HEAD_BYTES_MAX,
            "the response head exceeds {HEAD_BYTES_MAX} bytes"
        );
        Ok(None)
    }

    fn feed_body(&mut self, received: usize, mut body: Body) -> anyhow::Result<Option<Complete>> {
        let Some(remaining) = body.remaining.checked_sub(received) else {
            bail!(
                "{} bytes after the end of the response",
                received - body.remaining
            );
        };
        if remaining == 0 {
            return Ok(Some(body.complete));
        }
        body.remaining = remaining;
        self.body = Some(body);
        Ok(None)
    }
}

fn parse_head(input: &[u8]) -> anyhow::Result<Option<(usize, Body)>> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut head = httparse::Response::new(&mut fields);
    let httparse::Status::Complete(bytes) = head.parse(input).context("not an HTTP response")?
    else {
        return Ok(None);
    };
    let status = head.code.context("no status")?;
    let remaining = content_length(head.headers)?;
    let keep_alive = head.version == Some(1) && !says_close(head.headers);
    Ok(Some((
        bytes,
        Body {
            remaining,
            complete: Complete { status, keep_alive },
        },
    )))
}

fn content_length(fields: &[httparse::Header<'_>]) -> anyhow::Result<usize> {
    let Some(field) = fields
        .iter()
        .find(|field| field.name.eq_ignore_ascii_case("content-length"))
    else {
        bail!("a response without content-length, which this client needs");
    };
    std::str::from_utf8(field.value)?
        .trim()
        .parse()
        .context("content-length is not a number")
}

fn says_close(fields: &[httparse::Header<'_>]) -> bool {
    let close = |field: &httparse::Header<'_>| {
        field.name.eq_ignore_ascii_case("connection") && field.value.eq_ignore_ascii_case(b"close")
    };
    fields.iter().any(close)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

    #[test]
    fn any_split_of_a_response_ends_at_the_same_byte() {
        let complete = Some(Complete {
            status: 200,
            keep_alive: true,
        });
        for split in 1..RESPONSE.len() {
            let mut reader = Reader::default();
            let (head, tail) = RESPONSE.split_at(split);
            assert_eq!(
                reader.feed(head).expect("valid so far"),
                None,
                "split at {split}"
            );
            assert_eq!(
                reader.feed(tail).expect("valid"),
                complete,
                "split at {split}"
            );
        }
    }

    #[test]
    fn bytes_nobody_asked_for_are_an_error() {
        let mut reader = Reader::default();
        assert!(reader.feed(&[RESPONSE, b"x"].concat()).is_err());
    }
}
