//! A decoder that finds the end of a chunked body (RFC 9112 section 7.1) as bytes arrive.

use httparse::{EMPTY_HEADER, Status, parse_chunk_size, parse_headers};

use super::malformed::{FIELDS_MAX, Malformed};

/// Bytes of a chunk's first line, or of all trailer fields.
const LINE_BYTES_MAX: usize = 16 * 1024;

/// A decoder of a chunked body, which may be fed in any pieces.
#[derive(Debug, Default)]
pub(super) struct Chunked {
    place: Place,
    /// The begin of an incomplete line, or of incomplete trailers.
    partial: Vec<u8>,
}

/// The element of the body that comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// A chunk's first line: its size, and perhaps extensions.
    #[default]
    Size,
    Data {
        left: u64,
    },
    /// The line's end behind a chunk's data.
    DataEnd,
    Trailers,
    End,
}

impl Chunked {
    /// Decodes bytes and passes the data among them to `keep`; returns the number of bytes used,
    /// and true at the body's end.
    pub(super) fn feed(
        &mut self,
        input: &[u8],
        keep: &mut dyn FnMut(&[u8]),
    ) -> Result<(usize, bool), Malformed> {
        let mut used = 0;
        while used < input.len() && self.place != Place::End {
            let rest = &input[used..];
            used += match self.place {
                Place::Data { left } => self.data(rest, left, keep),
                _ => self.framing(rest)?,
            };
        }
        Ok((used, self.place == Place::End))
    }

    fn data(&mut self, input: &[u8], left: u64, keep: &mut dyn FnMut(&[u8])) -> usize {
        let length = usize::try_from(left).map_or(input.len(), |left| left.min(input.len()));
        keep(&input[..length]);
        self.place = match left - length as u64 {
            0 => Place::DataEnd,
            left => Place::Data { left },
        };
        length
    }

    /// Parses a line, or the trailers; returns the number of bytes used.
    fn framing(&mut self, input: &[u8]) -> Result<usize, Malformed> {
        let before = self.partial.len();
        if before > 0 {
            self.partial.extend_from_slice(input);
        }
        let bytes = if before > 0 { &self.partial } else { input };
        let parsed = self.place.parse(bytes)?;
        if parsed.map_or(bytes.len(), |(length, _)| length) > LINE_BYTES_MAX {
            return Err(Malformed::Chunk);
        }
        let Some((length, next)) = parsed else {
            if before == 0 {
                self.partial.extend_from_slice(input);
            }
            return Ok(input.len());
        };
        self.place = next;
        self.partial.clear();
        Ok(length - before)
    }
}

impl Place {
    /// Parses an element that is not data; returns its length and the next one, `None` if it is not
    /// complete.
    fn parse(self, bytes: &[u8]) -> Result<Option<(usize, Self)>, Malformed> {
        let (length, next) = match (self, bytes) {
            // The library takes a line without any digit for a size of 0.
            (Self::Size, [first, ..]) if first.is_ascii_hexdigit() => {
                match parse_chunk_size(bytes).map_err(|_| Malformed::Chunk)? {
                    Status::Complete((length, 0)) => (length, Self::Trailers),
                    Status::Complete((length, left)) => (length, Self::Data { left }),
                    Status::Partial => return Ok(None),
                }
            }
            (Self::DataEnd, [b'\r', b'\n', ..]) => (2, Self::Size),
            (Self::DataEnd, [b'\r']) => return Ok(None),
            (Self::Trailers, [b'\r', b'\n', ..]) => (2, Self::End),
            (Self::Trailers, _) => {
                let mut fields = [EMPTY_HEADER; FIELDS_MAX];
                match parse_headers(bytes, &mut fields).map_err(|_| Malformed::Chunk)? {
                    Status::Complete((length, _)) => (length, Self::End),
                    Status::Partial => return Ok(None),
                }
            }
            _ => return Err(Malformed::Chunk),
        };
        Ok(Some((length, next)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_chunk_is_refused() {
        for input in [
            "\r\n",
            ";a\r\n",
            "x\r\n",
            "-1\r\n",
            "11111111111111111\r\n",
            "1\nabc",
            "1\r\nabc",
            "0\r\nno field\r\n",
        ] {
            let fed = Chunked::default().feed(input.as_bytes(), &mut |_| {});
            assert_eq!(fed, Err(Malformed::Chunk), "{input:?}");
        }
    }

    #[test]
    fn a_line_has_a_limit() {
        let line = [b"1;".as_slice(), &[b'a'; LINE_BYTES_MAX]].concat();
        assert!(Chunked::default().feed(&line, &mut |_| {}).is_err());
        let line = [&line, b"\r\n".as_slice()].concat();
        assert!(Chunked::default().feed(&line, &mut |_| {}).is_err());
    }
}
