//! Parses the payloads of a worker's frames.

use std::ops::RangeInclusive;
use std::time::Duration;

use bytes::Bytes;
use greenroom_server::FieldNames;
use http::header::{
    HeaderName, HeaderValue, InvalidHeaderName, InvalidHeaderValue, MaxSizeReached,
};
use http::{HeaderMap, StatusCode};

use super::names::Spellings;
use crate::chunks::NotChunked;

/// The status and header fields of a response.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// The application's spelling of the fields' names.
    pub(crate) names: FieldNames,
}

/// A file that the worker holds open as a response's body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentFile {
    pub(crate) descriptor: u32,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// The reasons why HTTP forbids a response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("the status {status}; {} to {} are allowed", allowed.start(), allowed.end())]
    Status {
        status: u16,
        allowed: RangeInclusive<u16>,
    },
    #[error("the header name {name:?}: {source}")]
    Name {
        name: String,
        source: InvalidHeaderName,
    },
    #[error("a value of the header {name:?}: {source}")]
    Value {
        name: String,
        source: InvalidHeaderValue,
    },
    #[error("the header {0:?} has no value")]
    NoValue(String),
    #[error("too many headers: {0}")]
    TooMany(#[from] MaxSizeReached),
    #[error(
        "the transfer coding {0:?}; the server frames responses by itself, and only `chunked` is \
         undone"
    )]
    Coding(String),
    #[error(
        "its body is not in chunks ({0}), although its Transfer-Encoding says so; without that \
         header it is sent as it is"
    )]
    Chunks(#[from] NotChunked),
}

/// The reasons why a frame violates the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadFrame {
    #[error("a frame is too short")]
    Short,
    #[error("a frame of the unknown type {0:#04x}")]
    Kind(u8),
    #[error("a response to the unknown request {0}")]
    Unknown(u32),
    #[error("a second response to the request {0}")]
    Second(u32),
}

/// The statuses of a final response.
pub(super) const FINAL: RangeInclusive<u16> = 200..=599;

/// The statuses of informational responses (RFC 9110, section 15.2), except those that only the
/// server sends.
pub(super) const INFORMATIONAL: RangeInclusive<u16> = 102..=199;

/// A reader that takes fields from the front of a payload.
pub(super) struct Fields<'a> {
    left: &'a [u8],
    spellings: &'a Spellings,
}

impl<'a> Fields<'a> {
    pub(super) fn new(payload: &'a [u8], spellings: &'a Spellings) -> Self {
        Self {
            left: payload,
            spellings,
        }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], BadFrame> {
        let (taken, rest) = self.left.split_first_chunk().ok_or(BadFrame::Short)?;
        self.left = rest;
        Ok(*taken)
    }

    pub(super) fn number(&mut self) -> Result<u32, BadFrame> {
        self.take().map(u32::from_be_bytes)
    }

    /// Reads the time of a run, in microseconds.
    pub(super) fn busy(&mut self) -> Result<Duration, BadFrame> {
        self.number()
            .map(|micros| Duration::from_micros(micros.into()))
    }

    fn bytes(&mut self) -> Result<&'a [u8], BadFrame> {
        let length = self.number()? as usize;
        let (taken, rest) = self.left.split_at_checked(length).ok_or(BadFrame::Short)?;
        self.left = rest;
        Ok(taken)
    }

    /// Reads status and header fields. The outer error is the worker's, the inner one the
    /// application's.
    pub(super) fn head(
        &mut self,
        allowed: RangeInclusive<u16>,
    ) -> Result<Result<Head, Malformed>, BadFrame> {
        let status = self.take().map(u16::from_be_bytes)?;
        let fields = self.bytes()?;
        Ok(head(status, allowed, fields, self.spellings))
    }

    pub(super) fn file(&mut self) -> Result<SentFile, BadFrame> {
        Ok(SentFile {
            descriptor: self.number()?,
            offset: self.take().map(u64::from_be_bytes)?,
            length: self.take().map(u64::from_be_bytes)?,
        })
    }

    pub(super) fn rest(self) -> Bytes {
        Bytes::copy_from_slice(self.left)
    }
}

fn head(
    status: u16,
    allowed: RangeInclusive<u16>,
    fields: &[u8],
    spellings: &Spellings,
) -> Result<Head, Malformed> {
    match StatusCode::from_u16(status) {
        Ok(code) if allowed.contains(&status) => Ok(Head {
            status: code,
            headers: headers(fields)?,
            names: spellings.of(words(fields).step_by(2)),
        }),
        _ => Err(Malformed::Status { status, allowed }),
    }
}

/// Splits header fields into names and values, in turn.
fn words(fields: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    let count = if fields.is_empty() { 0 } else { usize::MAX };
    fields.split(|&byte| byte == 0).take(count)
}

fn headers(fields: &[u8]) -> Result<HeaderMap, Malformed> {
    let mut headers = HeaderMap::new();
    let mut words = words(fields);
    while let Some(name) = words.next() {
        let said = || String::from_utf8_lossy(name).into_owned();
        let value = words.next().ok_or_else(|| Malformed::NoValue(said()))?;
        let name = HeaderName::from_bytes(name).map_err(|source| Malformed::Name {
            name: said(),
            source,
        })?;
        let value = HeaderValue::from_bytes(value).map_err(|source| Malformed::Value {
            name: said(),
            source,
        })?;
        headers.try_append(name, value)?;
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use greenroom_server::FieldNames;

    use super::*;

    fn head(status: u16, allowed: RangeInclusive<u16>, fields: &[u8]) -> Result<Head, Malformed> {
        super::head(status, allowed, fields, &Spellings::default())
    }

    #[test]
    fn headers_of_one_name_are_all_kept() {
        let head =
            head(200, FINAL, b"Set-Cookie\0a=1\0set-cookie\0b=2").expect("it is well formed");
        let cookies: Vec<_> = head.headers.get_all("set-cookie").iter().collect();
        assert_eq!(cookies, ["a=1", "b=2"]);
        assert_eq!(head.names, FieldNames::new(["Set-Cookie", "set-cookie"]));
    }

    #[test]
    fn more_headers_than_can_be_kept_are_refused() {
        let fields = (0..40_000).map(|number| format!("x{number}\0"));
        let fields = fields.collect::<Vec<_>>().join("\0");
        let refused = head(200, FINAL, fields.as_bytes()).expect_err("they are too many");
        assert!(refused.to_string().contains("too many"), "{refused}");
    }

    #[test]
    fn a_response_may_have_no_headers() {
        let head = head(204, FINAL, b"").expect("it is well formed");
        assert!(head.headers.is_empty());
    }

    #[test]
    fn what_http_forbids_is_refused_with_its_name() {
        let said = |fields: &[u8]| {
            head(200, FINAL, fields)
                .expect_err("HTTP forbids it")
                .to_string()
        };
        assert!(said(b"X-A\0one\r\nX-B: two").contains("\"X-A\""));
        assert!(said(b"X A\0one").contains("\"X A\""));
        assert!(said(b"X-A").contains("no value"));
        assert!(head(199, FINAL, b"").is_err() && head(600, FINAL, b"").is_err());
    }
}
