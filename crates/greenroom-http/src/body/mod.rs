//! Framing of a request's body (RFC 9112, 6 and 7).

mod chunked;

use http::HeaderMap;

pub(crate) use chunked::{Chunked, is_framing};

use crate::{Limits, Rejected};

/// The framing of a request's body (RFC 9112, 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// No body, or one of no bytes: no [`Event::End`](crate::Event::End) follows the head.
    None,
    /// `Content-Length`, at least 1 byte.
    Exact(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
}

#[derive(Debug)]
pub(crate) enum Decoder {
    Exact(u64),
    Chunked(Chunked),
}

/// One step of a body: the meaning of the bytes at the beginning of the input.
#[derive(Debug)]
pub(crate) enum Step<'a> {
    NeedMore,
    Data(&'a [u8]),
    Trailers(Box<HeaderMap>),
    End,
}

impl Decoder {
    pub(crate) fn new(length: BodyLength) -> Option<Self> {
        match length {
            BodyLength::None => None,
            BodyLength::Exact(bytes) => Some(Self::Exact(bytes)),
            BodyLength::Chunked => Some(Self::Chunked(Chunked::default())),
        }
    }

    /// Decodes the beginning of `input`. Returns the bytes used up and what they were.
    pub(crate) fn decode<'a>(
        &mut self,
        input: &'a [u8],
        limits: &Limits,
    ) -> Result<(usize, Step<'a>), Rejected> {
        match self {
            Self::Exact(0) => Ok((0, Step::End)),
            Self::Exact(_) if input.is_empty() => Ok((0, Step::NeedMore)),
            Self::Exact(left) => {
                let data = take(input, left);
                Ok((data.len(), Step::Data(data)))
            }
            Self::Chunked(chunked) => chunked.decode(input, limits),
        }
    }
}

/// Takes as much of `input` as belongs to the `left` bytes, which it reduces.
fn take<'a>(input: &'a [u8], left: &mut u64) -> &'a [u8] {
    let length = usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
    *left -= length as u64;
    &input[..length]
}
