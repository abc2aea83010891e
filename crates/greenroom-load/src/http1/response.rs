//! A parser that finds the end of a response (RFC 9112 section 6) as bytes arrive.

use super::chunked::Chunked;
use super::malformed::{FIELDS_MAX, HEAD_BYTES_MAX, Malformed};
use crate::record::FirstResponse;

/// A parser of consecutive responses from the bytes of a connection.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// The begin of an incomplete head.
    partial: Vec<u8>,
    body: Option<Body>,
    /// The copy of this response, if it is to be kept.
    capture: Option<Box<FirstResponse>>,
}

/// A response that has come in full.
#[derive(Debug)]
pub(super) struct Complete {
    pub(super) status: u16,
    pub(super) body_bytes: u64,
    /// True if its connection may serve another request.
    pub(super) keep_alive: bool,
    pub(super) captured: Option<Box<FirstResponse>>,
}

#[derive(Debug)]
struct Body {
    framing: Framing,
    status: u16,
    received: u64,
    keep_alive: bool,
}

#[derive(Debug)]
enum Framing {
    Length(u64),
    Chunked(Chunked),
    UntilClose,
}

impl Reader {
    /// Keeps a copy of the next response; false if one has begun, of which the begin is gone.
    pub(super) fn capture(&mut self) -> bool {
        let is_between = self.partial.is_empty() && self.body.is_none();
        if is_between {
            self.capture = Some(Box::default());
        }
        is_between
    }

    /// Parses bytes; returns the number that belong to this response, and the response when it is
    /// complete. All bytes are used until then.
    pub(super) fn feed(
        &mut self,
        input: &[u8],
        to_head: bool,
    ) -> Result<(usize, Option<Complete>), Malformed> {
        let mut used = 0;
        while self.body.is_none() {
            let Some(head_bytes) = self.feed_head(&input[used..], to_head)? else {
                return Ok((input.len(), None));
            };
            used += head_bytes;
        }
        let (body_bytes, complete) = self.feed_body(&input[used..])?;
        Ok((used + body_bytes, complete))
    }

    /// Ends a response that is delimited by the connection's end.
    pub(super) fn end(&mut self) -> Option<Complete> {
        let until_close = |body: &mut Body| matches!(body.framing, Framing::UntilClose);
        let body = self.body.take_if(until_close)?;
        Some(self.complete(&body))
    }

    /// Parses a head; returns the bytes used of `input` once it has ended. Interim responses are
    /// skipped.
    fn feed_head(&mut self, input: &[u8], to_head: bool) -> Result<Option<usize>, Malformed> {
        let before = self.partial.len();
        if before > 0 {
            self.partial.extend_from_slice(input);
        }
        let bytes = if before > 0 { &self.partial } else { input };
        let Some((head_bytes, body)) = parse(bytes, to_head)? else {
            if bytes.len() > HEAD_BYTES_MAX {
                return Err(Malformed::HeadTooLong);
            }
            if before == 0 {
                self.partial.extend_from_slice(input);
            }
            return Ok(None);
        };
        let is_final = body.status >= 200 || body.status == 101;
        if let Some(capture) = self.capture.as_mut().filter(|_| is_final) {
            capture.head = bytes[..head_bytes].to_vec();
        }
        self.partial.clear();
        self.body = is_final.then_some(body);
        Ok(Some(head_bytes - before))
    }

    fn feed_body(&mut self, input: &[u8]) -> Result<(usize, Option<Complete>), Malformed> {
        let Some(body) = &mut self.body else {
            return Ok((0, None));
        };
        let capture = &mut self.capture;
        let mut keep = |data: &[u8]| {
            body.received += data.len() as u64;
            if let Some(capture) = capture {
                let space = FirstResponse::BODY_BYTES_MAX.saturating_sub(capture.body.len());
                capture
                    .body
                    .extend_from_slice(&data[..data.len().min(space)]);
            }
        };
        let (used, is_done) = match &mut body.framing {
            Framing::Length(left) => {
                let used = usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
                keep(&input[..used]);
                *left -= used as u64;
                (used, *left == 0)
            }
            Framing::Chunked(chunked) => chunked.feed(input, &mut keep)?,
            Framing::UntilClose => {
                keep(input);
                (input.len(), false)
            }
        };
        if !is_done {
            return Ok((used, None));
        }
        let complete = self.body.take().map(|body| self.complete(&body));
        Ok((used, complete))
    }

    fn complete(&mut self, body: &Body) -> Complete {
        let mut captured = self.capture.take();
        if let Some(first) = &mut captured {
            first.body_bytes = body.received;
        }
        Complete {
            status: body.status,
            body_bytes: body.received,
            keep_alive: body.keep_alive,
            captured,
        }
    }
}

fn parse(input: &[u8], to_head: bool) -> Result<Option<(usize, Body)>, Malformed> {
    let mut fields = [const { std::mem::MaybeUninit::uninit() }; FIELDS_MAX];
    let mut head = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut head,
        input,
        &mut fields,
    );
    let bytes = match parsed {
        Ok(httparse::Status::Complete(bytes)) => bytes,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => {
            return Err(Malformed::Head {
                reason: error.to_string(),
                begin: String::from_utf8_lossy(&input[..input.len().min(32)]).into_owned(),
            });
        }
    };
    let status = head.code.unwrap_or_default();
    if status < 100 {
        return Err(Malformed::Status(status));
    }
    let fields = Fields::read(head.headers)?;
    let framing = if to_head || status < 200 || matches!(status, 204 | 304) {
        Framing::Length(0)
    } else {
        fields.framing()
    };
    let persists = !fields.close && (head.version == Some(1) || fields.keep_alive);
    let keep_alive = persists && status != 101 && !matches!(framing, Framing::UntilClose);
    let body = Body {
        framing,
        status,
        received: 0,
        keep_alive,
    };
    Ok(Some((bytes, body)))
}

/// The header fields that decide on a response's end.
#[derive(Debug, Default)]
struct Fields {
    close: bool,
    keep_alive: bool,
    length: Option<u64>,
    /// The last transfer coding, if there is one: true if it is `chunked`.
    ends_chunked: Option<bool>,
}

impl Fields {
    fn read(fields: &[httparse::Header<'_>]) -> Result<Self, Malformed> {
        let mut read = Self::default();
        for field in fields {
            // The lengths tell most fields apart without looking at their letters.
            match field.name.len() {
                10 if field.name.eq_ignore_ascii_case("connection") => {
                    read.close |= lists(field.value, b"close");
                    read.keep_alive |= lists(field.value, b"keep-alive");
                }
                14 if field.name.eq_ignore_ascii_case("content-length") => {
                    read.add_length(field.value)?;
                }
                17 if field.name.eq_ignore_ascii_case("transfer-encoding") => {
                    let value = field.value.trim_ascii().to_ascii_lowercase();
                    read.ends_chunked = Some(value.ends_with(b"chunked"));
                }
                _ => {}
            }
        }
        Ok(read)
    }

    fn add_length(&mut self, value: &[u8]) -> Result<(), Malformed> {
        let length = number(value)?;
        match self.length.replace(length) {
            Some(other) if other != length => Err(Malformed::Length(format!("{other}, {length}"))),
            _ => Ok(()),
        }
    }

    /// Returns the framing of a body (RFC 9112 section 6.3).
    fn framing(&self) -> Framing {
        match (self.ends_chunked, self.length) {
            (Some(true), _) => Framing::Chunked(Chunked::default()),
            (None, Some(length)) => Framing::Length(length),
            (Some(false), _) | (None, None) => Framing::UntilClose,
        }
    }
}

fn lists(value: &[u8], name: &[u8]) -> bool {
    let mut options = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    options.any(|option| option.eq_ignore_ascii_case(name))
}

fn number(value: &[u8]) -> Result<u64, Malformed> {
    let text = std::str::from_utf8(value).ok();
    let digits = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    digits
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| Malformed::Length(String::from_utf8_lossy(value).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(input: &[u8]) -> Complete {
        let (used, complete) = Reader::default().feed(input, false).expect("well-formed");
        assert_eq!(used, input.len());
        complete.expect("complete")
    }

    #[test]
    fn any_split_of_a_response_ends_at_the_same_byte() {
        let responses: [&[u8]; 3] = [
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\n\
            X: y\r\n\r\n",
        ];
        for response in responses {
            let whole = read_all(response);
            for split in 1..response.len() {
                let mut reader = Reader::default();
                let (head, tail) = response.split_at(split);
                let (used, none) = reader.feed(head, false).expect("well-formed so far");
                assert!(none.is_none() && used == head.len(), "split at {split}");
                let (used, complete) = reader.feed(tail, false).expect("well-formed");
                let complete = complete.expect("complete");
                assert_eq!(used, tail.len(), "split at {split}");
                assert_eq!(complete.status, whole.status);
                assert_eq!(complete.body_bytes, whole.body_bytes);
                assert!(complete.keep_alive);
            }
        }
    }

    #[test]
    fn bytes_behind_a_response_are_left() {
        let mut reader = Reader::default();
        let two = b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n";
        let (used, complete) = reader.feed(two, false).expect("well-formed");
        assert_eq!(
            (used, complete.map(|complete| complete.status)),
            (27, Some(204))
        );
    }

    #[test]
    fn a_response_without_length_ends_with_its_connection() {
        let mut reader = Reader::default();
        reader
            .feed(b"HTTP/1.1 200 OK\r\n\r\nabc", false)
            .expect("well-formed");
        let complete = reader.end().expect("complete");
        assert_eq!((complete.body_bytes, complete.keep_alive), (3, false));
        assert!(reader.end().is_none());
    }

    #[test]
    fn a_response_to_head_has_no_body() {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        let (_, complete) = Reader::default().feed(head, true).expect("well-formed");
        assert_eq!(complete.expect("complete").body_bytes, 0);
    }

    #[test]
    fn connections_persist_as_the_version_and_the_field_say() {
        let persists = |head: &str| read_all(head.as_bytes()).keep_alive;
        assert!(persists("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
        assert!(!persists(
            "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n"
        ));
        assert!(!persists("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"));
        assert!(persists(
            "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n"
        ));
        assert!(!persists(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nConnection: keep-alive\r\n\
            Content-Length: 0\r\n\r\n"
        ));
        assert!(!persists("HTTP/1.1 101 Switching Protocols\r\n\r\n"));
    }

    #[test]
    fn garbage_is_reported_with_its_begin() {
        let error = Reader::default()
            .feed(b"220 mail.example ESMTP\r\n", false)
            .expect_err("no HTTP");
        assert!(error.to_string().contains("220 mail.example"), "{error}");
        let error = Reader::default()
            .feed(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", false)
            .expect_err("no length");
        assert_eq!(error, Malformed::Length("-5".to_owned()));
        let two_lengths = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n";
        assert!(Reader::default().feed(two_lengths, false).is_err());
        assert_eq!(
            Reader::default()
                .feed(b"HTTP/1.1 099 Low\r\n\r\n", false)
                .expect_err("no status"),
            Malformed::Status(99)
        );
        let endless = [b"HTTP/1.1 200 OK\r\nA: ".as_slice(), &vec![b'a'; 70_000]].concat();
        assert!(Reader::default().feed(&endless, false).is_err());
    }

    #[test]
    fn the_first_response_is_kept() {
        let mut reader = Reader::default();
        assert!(reader.capture());
        let response = b"HTTP/1.1 200 OK\r\nServer: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n\
            ab\r\n1\r\nc\r\n0\r\n\r\n";
        let (_, complete) = reader.feed(response, false).expect("well-formed");
        let first = complete.expect("complete").captured.expect("kept");
        assert_eq!((first.body.as_slice(), first.body_bytes), (&b"abc"[..], 3));
        assert_eq!(first.field("server").as_deref(), Some("x"));
    }

    #[test]
    fn a_response_that_has_begun_is_not_kept() {
        for begin in [
            "HTTP/1.1 200",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n",
        ] {
            let mut reader = Reader::default();
            reader.feed(begin.as_bytes(), false).expect("well-formed");
            assert!(!reader.capture(), "{begin:?}");
        }
    }
}
