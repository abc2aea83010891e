//! A decoder that finds the end of a chunked body (RFC 9112 section 7.1) as bytes arrive.

use super::response::Malformed;

/// Bytes of a chunk's first line, or of all trailer fields.
const LINE_BYTES_MAX: usize = 16 * 1024;

/// A decoder of a chunked body, which may be fed in any pieces.
#[derive(Debug, Default)]
pub(super) struct Chunked {
    place: Place,
    /// Bytes of the line or the trailers at hand.
    line_bytes: usize,
}

#[derive(Debug)]
enum Place {
    /// The digits of a size, of which there is at least one when `digits` is true.
    Size {
        size: u64,
        digits: bool,
    },
    /// Behind the size, until the end of its line.
    Extension {
        size: u64,
    },
    Data {
        left: u64,
    },
    /// The line's end behind a chunk's data.
    DataEnd,
    /// A line of the trailers, empty so far or not.
    Trailer {
        is_empty: bool,
    },
}

impl Default for Place {
    fn default() -> Self {
        Self::Size {
            size: 0,
            digits: false,
        }
    }
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
        while let Some(&byte) = input.get(used) {
            if let Place::Data { left } = self.place {
                used += self.data(&input[used..], left, keep);
                continue;
            }
            used += 1;
            if self.framing(byte)? {
                return Ok((used, true));
            }
        }
        Ok((used, false))
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

    /// Decodes a byte that is not data; true if it is the last of the body.
    fn framing(&mut self, byte: u8) -> Result<bool, Malformed> {
        self.line_bytes += 1;
        if self.line_bytes > LINE_BYTES_MAX {
            return Err(Malformed::Chunk);
        }
        self.place = match (&self.place, byte) {
            (Place::Size { size, .. }, digit) if digit.is_ascii_hexdigit() => Place::Size {
                size: push_digit(*size, digit).ok_or(Malformed::Chunk)?,
                digits: true,
            },
            (Place::Size { size, digits: true } | Place::Extension { size }, b'\n') => {
                self.line_bytes = 0;
                after_size(*size)
            }
            (Place::Size { size, digits: true }, b';' | b' ' | b'\t' | b'\r')
            | (Place::Extension { size }, _) => Place::Extension { size: *size },
            (Place::DataEnd, b'\r') => Place::DataEnd,
            (Place::DataEnd, b'\n') => {
                self.line_bytes = 0;
                Place::default()
            }
            (Place::Trailer { is_empty: true }, b'\n') => return Ok(true),
            (Place::Trailer { is_empty }, b'\r') => Place::Trailer {
                is_empty: *is_empty,
            },
            (Place::Trailer { .. }, byte) => Place::Trailer {
                is_empty: byte == b'\n',
            },
            _ => return Err(Malformed::Chunk),
        };
        Ok(false)
    }
}

fn push_digit(size: u64, digit: u8) -> Option<u64> {
    let digit = char::from(digit).to_digit(16)?;
    size.checked_mul(16)?.checked_add(digit.into())
}

fn after_size(size: u64) -> Place {
    match size {
        0 => Place::Trailer { is_empty: true },
        left => Place::Data { left },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_chunk_is_refused() {
        for input in [
            "\r\n",
            "x\r\n",
            "-1\r\n",
            "11111111111111111\r\n",
            "1\r\nabc",
        ] {
            let fed = Chunked::default().feed(input.as_bytes(), &mut |_| {});
            assert_eq!(fed, Err(Malformed::Chunk), "{input:?}");
        }
    }

    #[test]
    fn a_line_has_a_limit() {
        let line = [b"1;".as_slice(), &[b'a'; LINE_BYTES_MAX]].concat();
        assert!(Chunked::default().feed(&line, &mut |_| {}).is_err());
    }
}
