//! The crate's only unsafe code: values of fields, which are not looked through a second time.
//!
//! httparse takes a field only if each byte of its value is a tab, or at least 0x20 and not 0x7f.
//! These are the bytes that a `HeaderValue` may have, and to look for others once more was a
//! fourteenth of what a browser's request costs outside the kernel.
#![allow(
    unsafe_code,
    reason = "one constructor that does not check, argued where it is called"
)]

use std::mem::{self, MaybeUninit};

use bytes::{Buf, Bytes};
use http::HeaderValue;
use httparse::{Header, ParserConfig, Request, Status};

use crate::Context;

/// A field of a head that httparse has found whole and well-formed: [`parse`] alone makes them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'f, 'b>(&'f Header<'b>);

/// The fields of such a head, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'f, 'b>(&'f [Header<'b>]);

/// The bytes of a head, copied once: the target and every value are slices of the copy.
pub(crate) struct Shared<'b> {
    head: &'b [u8],
    bytes: Bytes,
}

/// Parses the head at the beginning of `window`, and leaves its request line in `line`. Returns
/// what httparse does, and the fields of a head that is complete.
pub(crate) fn parse<'f, 'b>(
    line: &mut Request<'f, 'b>,
    window: &'b [u8],
    storage: &'f mut [MaybeUninit<Header<'b>>],
) -> (httparse::Result<usize>, Fields<'f, 'b>) {
    let parsed = ParserConfig::default().parse_request_with_uninit_headers(line, window, storage);
    let fields = mem::take(&mut line.headers);
    match parsed {
        Ok(Status::Complete(_)) => (parsed, Fields(fields)),
        _ => (parsed, Fields(&[])),
    }
}

impl<'f, 'b> Fields<'f, 'b> {
    pub(crate) fn as_slice(self) -> &'f [Header<'b>] {
        self.0
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Field<'f, 'b>> {
        self.0.iter().map(Field)
    }
}

impl<'b> Field<'_, 'b> {
    pub(crate) fn name(self) -> &'b str {
        self.0.name
    }

    pub(crate) fn bytes(self) -> &'b [u8] {
        self.0.value
    }

    /// Returns the value, as a slice of the copy of its head.
    ///
    /// # Panics
    ///
    /// If it is of another head.
    pub(crate) fn value(self, shared: &Shared<'b>) -> HeaderValue {
        let bytes = shared.slice(self.0.value);
        debug_assert_eq!(bytes, self.0.value);
        // SAFETY: `bytes` equals the value, which is a part of `shared.head`, of which `shared` has
        // a copy. `parse` alone makes fields, of a head that httparse took: it has looked at each
        // byte of the value, and takes no other than a `HeaderValue` does. The test below compares
        // the two for all bytes.
        unsafe { HeaderValue::from_maybe_shared_unchecked(bytes) }
    }
}

impl<'b> Shared<'b> {
    pub(crate) fn new(head: &'b [u8], context: &mut Context) -> Self {
        Self {
            head,
            bytes: context.copy(head),
        }
    }

    /// Returns the slice of the copy that corresponds to `part` of the head.
    ///
    /// # Panics
    ///
    /// If that is no part of the head.
    pub(crate) fn slice(&self, part: &'b [u8]) -> Bytes {
        if part.is_empty() {
            return Bytes::new();
        }
        let from = self.place(part);
        self.bytes.slice(from..from + part.len())
    }

    /// Like [`slice`](Self::slice), but gives up the rest: one reference fewer to count.
    pub(crate) fn narrowed_to(mut self, part: &'b [u8]) -> Bytes {
        let from = self.place(part);
        self.bytes.truncate(from + part.len());
        self.bytes.advance(from);
        self.bytes
    }

    fn place(&self, part: &[u8]) -> usize {
        (part.as_ptr() as usize).wrapping_sub(self.head.as_ptr() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the value that httparse takes of a field with this byte in it, at each place that
    /// its loops treat differently.
    fn taken(byte: u8, before: usize) -> Option<HeaderValue> {
        let mut head = b"GET / HTTP/1.1\r\nx: ".to_vec();
        head.extend(std::iter::repeat_n(b'v', before));
        head.extend([byte, b'v']);
        head.extend_from_slice(b"\r\n\r\n");
        let mut storage = [MaybeUninit::uninit(); 1];
        let mut line = Request::new(&mut []);
        let (parsed, fields) = parse(&mut line, &head, &mut storage);
        let length = parsed.ok().filter(Status::is_complete)?.unwrap();
        let shared = Shared::new(&head[..length], &mut Context::default());
        fields.iter().next().map(|field| field.value(&shared))
    }

    /// Places of the byte, at the ends of the words and vectors that are looked at together. One
    /// for Miri, which takes a twentieth of a second for each head.
    const BEFORE: &[usize] = if cfg!(miri) {
        &[7]
    } else {
        &[1, 7, 8, 31, 32, 70]
    };

    #[test]
    fn httparse_takes_no_value_that_is_not_one() {
        let mut takes = 0;
        for byte in 0..=u8::MAX {
            for &before in BEFORE {
                let value = taken(byte, before);
                takes += usize::from(value.is_some());
                let mut bytes = vec![b'v'; before];
                bytes.extend([byte, b'v']);
                let checked = HeaderValue::from_bytes(&bytes);
                assert_eq!(value, checked.ok(), "{byte:#x} after {before} bytes");
            }
        }
        assert_eq!(takes, BEFORE.len() * (1 + 0x5f + 0x80));
    }

    #[test]
    fn a_head_that_is_not_whole_has_no_fields() {
        for head in [
            "GET / HTTP/1.1\r\nx: v\r\n",
            "GET / HTTP/1.1\r\nx: v\x01\r\n\r\n",
        ] {
            let mut storage = [MaybeUninit::uninit(); 1];
            let mut line = Request::new(&mut []);
            let (parsed, fields) = parse(&mut line, head.as_bytes(), &mut storage);
            assert!(!parsed.is_ok_and(|parsed| parsed.is_complete()));
            assert!(fields.as_slice().is_empty());
        }
    }
}
