//! Encoding of responses: the head, with framing that follows from the body and not from what the
//! application says of it, and the body's chunks.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::body::is_framing;
use crate::{DateCache, FieldNames, ReasonPhrase};

/// The size of a response's body, as far as it is known before it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodySize {
    /// Exactly this many bytes.
    Exact(u64),
    /// Known only at its end.
    Unknown,
}

/// The framing of the response under way (RFC 9112, 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// No body on the wire: `HEAD`, 204, 304.
    None,
    /// `Content-Length`, with the number of bytes still to come.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// Ended by closing the connection: HTTP/1.0 and a body of unknown size.
    Close,
}

/// The statement of a response's head about the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    Close,
    /// HTTP/1.1 persists by default: nothing is said.
    Implicit,
    /// HTTP/1.0 needs `Connection: keep-alive`.
    KeepAlive,
}

/// Returns `true` for responses that never carry content (RFC 9110, 15.3.5 and 15.4.5).
pub(crate) fn is_bodyless(status: StatusCode) -> bool {
    status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED
}

/// Returns the length that a response without content may state (RFC 9110, 8.6): of a 304, that of
/// the response which the client's condition has spared it; of a 204, none.
///
/// The length of the body at hand says nothing about that response. Frameworks add it by
/// themselves, so a declared length that equals it is not sent.
pub(crate) fn length_of_bodyless(
    status: StatusCode,
    declared: Option<u64>,
    size: BodySize,
) -> Option<u64> {
    let spared =
        |length: &u64| status == StatusCode::NOT_MODIFIED && size != BodySize::Exact(*length);
    declared.filter(spared)
}

/// Returns the status itself, or 500 if it cannot end an exchange.
pub(crate) fn final_status(status: StatusCode) -> StatusCode {
    if status.is_informational() {
        return StatusCode::INTERNAL_SERVER_ERROR;
    }
    status
}

/// A status that is not informational, or one that is the server's own to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is no informational status that an application sends: allowed are 102 to 199")]
pub struct NotInformational(pub StatusCode);

/// Appends an informational response, such as `103 Early Hints` (RFC 9110, 15.2; RFC 8297), which
/// precedes the final one. Only a client that [may be sent
/// one](crate::Connection::takes_informational) understands it.
///
/// It has no content, so fields that frame one, and those that concern the connection, are left
/// out. `names` spell those that are sent.
///
/// # Errors
///
/// [`NotInformational`] unless the status is from 102 to 199: `100 Continue` and
/// `101 Switching Protocols` mean something to the connection, and are not the application's.
pub fn informational(
    status: StatusCode,
    headers: &HeaderMap,
    names: Option<&FieldNames>,
    out: &mut Vec<u8>,
) -> Result<(), NotInformational> {
    if !status.is_informational() || status.as_u16() < 102 {
        return Err(NotInformational(status));
    }
    status_line(status, None, out);
    let mut at = 0;
    for (name, value) in headers {
        if !is_framing(name) {
            field(spelling(name, names, &mut at), value, out);
        }
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// The application's own fields about things that the server decides.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Noted {
    pub(crate) close: bool,
    pub(crate) dated: bool,
    /// `Content-Length`, if it is one decimal number.
    pub(crate) length: Option<u64>,
    pub(crate) upgrade: bool,
}

/// Ends the head that [`status_line`] and [`fields`] began.
pub(crate) fn end_of_head(
    framing: Framing,
    length: Option<u64>,
    persistence: Persistence,
    date: Option<&DateCache>,
    out: &mut Vec<u8>,
) {
    match (framing, length) {
        (Framing::Chunked, _) => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        (_, Some(length)) => length_field(length, out),
        (_, None) => {}
    }
    match persistence {
        Persistence::Close => out.extend_from_slice(b"Connection: close\r\n"),
        Persistence::KeepAlive => out.extend_from_slice(b"Connection: keep-alive\r\n"),
        Persistence::Implicit => {}
    }
    out.extend_from_slice(date.map_or(b"\r\n", DateCache::last_lines));
}

/// Appends the status line (RFC 9112, 4). Without a reason phrase it has the registered one, or
/// none.
pub(crate) fn status_line(status: StatusCode, reason: Option<&ReasonPhrase>, out: &mut Vec<u8>) {
    if status == StatusCode::OK && reason.is_none() {
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
        return;
    }
    let registered = || status.canonical_reason().unwrap_or_default().as_bytes();
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(reason.map_or_else(registered, ReasonPhrase::as_bytes));
    out.extend_from_slice(b"\r\n");
}

fn length_field(length: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"Content-Length: ");
    out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Appends the application's fields except those that the server owns, which it notes.
pub(crate) fn fields(headers: &HeaderMap, names: Option<&FieldNames>, out: &mut Vec<u8>) -> Noted {
    let mut noted = Noted::default();
    let mut at = 0;
    for (name, value) in headers {
        let text = name.as_str();
        match text.len() {
            4 if text == "date" => noted.dated = true,
            7 if text == "upgrade" => noted.upgrade = true,
            10 if text == "connection" => {
                noted.close |= asks_to_close(value);
                continue;
            }
            10 if text == "keep-alive" => continue,
            14 if text == "content-length" => {
                noted.length = value.to_str().ok().and_then(decimal);
                continue;
            }
            17 if text == "transfer-encoding" => continue,
            _ => {}
        }
        field(spelling(name, names, &mut at), value, out);
    }
    noted
}

fn spelling<'a>(name: &'a HeaderName, names: Option<&'a FieldNames>, at: &mut usize) -> &'a [u8] {
    let name = name.as_str().as_bytes();
    match names {
        Some(names) => names.spelling(name, at),
        None => name,
    }
}

fn asks_to_close(value: &HeaderValue) -> bool {
    let mut tokens = value.as_bytes().split(|&byte| byte == b',');
    tokens.any(|token| token.trim_ascii().eq_ignore_ascii_case(b"close"))
}

/// Parses `1*DIGIT` that fits 64 bits.
pub(crate) fn decimal(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

fn field(name: &[u8], value: &HeaderValue, out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// The bytes after the data of every chunk (RFC 9112, 7.1).
pub(crate) const CHUNK_END: &[u8] = b"\r\n";

/// Appends the size line of a chunk of `length` bytes.
pub(crate) fn chunk_start(length: usize, out: &mut Vec<u8>) {
    let mut digits = [0_u8; 16];
    let mut at = digits.len();
    let mut left = length;
    while left > 0 {
        at -= 1;
        digits[at] = b"0123456789abcdef"[left & 0xf];
        left >>= 4;
    }
    out.extend_from_slice(&digits[at..]);
    out.extend_from_slice(b"\r\n");
}

/// Appends the last chunk and the trailer section (RFC 9112, 7.1.2).
pub(crate) fn chunks_end(trailers: Option<&HeaderMap>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n");
    for (name, value) in trailers.into_iter().flatten() {
        if !is_framing(name) {
            field(name.as_str().as_bytes(), value, out);
        }
    }
    out.extend_from_slice(b"\r\n");
}
