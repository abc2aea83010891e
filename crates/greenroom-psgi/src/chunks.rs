//! A decoder for a response's body that the application has chunked by itself (RFC 9112, 7.1), as
//! `Plack::Middleware::Chunked` does. The server frames responses, so the body is decoded first.

use bytes::{Buf, Bytes};

/// The longest line between the data, in bytes: a size with its extension, or a trailer.
const LINE_BYTES_MAX: usize = 4_096;

/// The most hexadecimal digits of a 64-bit number.
const SIZE_DIGITS_MAX: usize = 16;

/// The reasons why a body is not chunked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotChunked {
    #[error("a chunk has no size")]
    Size,
    #[error("a chunk is not of the size that it has")]
    Length,
    #[error("a line is longer than {LINE_BYTES_MAX} bytes")]
    Line,
    #[error("it ends before its last chunk")]
    Short,
    #[error("something stands behind its last chunk")]
    Long,
}

/// A decoder of chunks.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    at: At,
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    #[default]
    Size,
    Data(u64),
    /// After the data: an empty line.
    DataEnd,
    Trailers,
    End,
}

impl Chunks {
    /// Decodes a complete body.
    pub(crate) fn whole(mut body: Bytes) -> Result<Bytes, NotChunked> {
        let (mut chunks, mut data) = (Self::default(), Vec::new());
        while let Some(piece) = chunks.next(&mut body)? {
            data.extend_from_slice(&piece);
        }
        chunks.end()?;
        Ok(data.into())
    }

    /// Takes the next piece of data from the front of `input`; `None` when nothing is left.
    pub(crate) fn next(&mut self, input: &mut Bytes) -> Result<Option<Bytes>, NotChunked> {
        while !input.is_empty() {
            match self.at {
                At::Data(left) => {
                    let most = usize::try_from(left).unwrap_or(usize::MAX);
                    let piece = input.split_to(input.len().min(most));
                    self.at = match left - piece.len() as u64 {
                        0 => At::DataEnd,
                        left => At::Data(left),
                    };
                    return Ok(Some(piece));
                }
                At::End => return Err(NotChunked::Long),
                At::Size | At::DataEnd | At::Trailers => self.take_line(input)?,
            }
        }
        Ok(None)
    }

    /// Ends the body; an error if its last chunk is missing.
    pub(crate) fn end(&self) -> Result<(), NotChunked> {
        match self.at {
            At::End => Ok(()),
            _ => Err(NotChunked::Short),
        }
    }

    fn take_line(&mut self, input: &mut Bytes) -> Result<(), NotChunked> {
        let end = memchr::memchr(b'\n', input);
        let bytes = end.unwrap_or(input.len());
        if self.line.len() + bytes > LINE_BYTES_MAX {
            return Err(NotChunked::Line);
        }
        self.line.extend_from_slice(&input[..bytes]);
        input.advance(bytes + usize::from(end.is_some()));
        if end.is_some() {
            self.at = self.behind_line()?;
            self.line.clear();
        }
        Ok(())
    }

    fn behind_line(&self) -> Result<At, NotChunked> {
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        match self.at {
            At::Size => match size(line).ok_or(NotChunked::Size)? {
                0 => Ok(At::Trailers),
                size => Ok(At::Data(size)),
            },
            At::DataEnd if line.is_empty() => Ok(At::Size),
            At::DataEnd => Err(NotChunked::Length),
            _ if line.is_empty() => Ok(At::End),
            at => Ok(at),
        }
    }
}

/// Parses the size of the line `size [ ";" extension ]`.
fn size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|&byte| byte == b';').next()?.trim_ascii();
    let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
    if digits.len() > SIZE_DIGITS_MAX || !is_hex {
        return None;
    }
    u64::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(body: &'static str) -> Result<String, NotChunked> {
        let data = Chunks::whole(Bytes::from_static(body.as_bytes()))?;
        Ok(String::from_utf8(data.to_vec()).expect("it is text"))
    }

    #[test]
    fn chunks_are_put_together() {
        let cases = [
            ("0\r\n\r\n", ""),
            (
                "5\r\nhello\r\nb\r\n big\r\nworld\r\n0\r\n\r\n",
                "hello big\r\nworld",
            ),
            ("1 ;name=value\r\na\r\n000\r\nTrailer: b\r\n\r\n", "a"),
            ("1\na\n0\n\n", "a"),
        ];
        for (body, data) in cases {
            assert_eq!(whole(body).as_deref(), Ok(data), "{body:?}");
        }
    }

    #[test]
    fn a_body_is_the_same_in_whatever_pieces_it_comes() {
        let body = "5\r\nhello\r\n1;x\r\n!\r\n0\r\nA: b\r\n\r\n";
        for length in 1..body.len() {
            let (mut chunks, mut data) = (Chunks::default(), Vec::new());
            for piece in body.as_bytes().chunks(length) {
                let mut input = Bytes::copy_from_slice(piece);
                while let Some(piece) = chunks.next(&mut input).expect("it is chunked") {
                    data.extend_from_slice(&piece);
                }
            }
            assert_eq!((chunks.end(), &data[..]), (Ok(()), &b"hello!"[..]));
        }
    }

    #[test]
    fn what_is_not_chunked_is_told() {
        let cases = [
            ("", NotChunked::Short),
            ("5\r\nhello\r\n", NotChunked::Short),
            ("0\r\n", NotChunked::Short),
            ("hello\r\n", NotChunked::Size),
            ("\r\n", NotChunked::Size),
            ("+5\r\nhello\r\n0\r\n\r\n", NotChunked::Size),
            ("10000000000000000\r\n", NotChunked::Size),
            ("4\r\nhello\r\n0\r\n\r\n", NotChunked::Length),
            ("0\r\n\r\n0\r\n\r\n", NotChunked::Long),
        ];
        for (body, problem) in cases {
            assert_eq!(whole(body), Err(problem), "{body:?}");
        }
        let endless = Bytes::from(vec![b'1'; LINE_BYTES_MAX + 1]);
        assert_eq!(Chunks::whole(endless), Err(NotChunked::Line));
    }
}
