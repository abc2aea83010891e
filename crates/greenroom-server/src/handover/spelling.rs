//! The names of a response's fields as the application spells them: hyper writes them in lower
//! case.

use std::sync::{Arc, OnceLock};

use greenroom_http::FieldNames;

/// The names of the response, there before its head is written, if the application spells them.
pub(super) type Names = Arc<OnceLock<FieldNames>>;

/// Respells the names in the head that hyper writes, which changes no length.
#[derive(Debug)]
pub(super) enum Spelling {
    /// No head with names was written yet.
    Due(Names),
    /// The head, of which so many bytes are sent.
    Head(Vec<u8>, usize),
    /// The rest stays as it is.
    Over,
}

impl Spelling {
    pub(super) fn new(names: Names) -> Self {
        Self::Due(names)
    }

    /// Returns what to send of `bytes`, from their first. hyper offers a head as a whole.
    pub(super) fn spelled<'a>(&'a mut self, bytes: &'a [u8]) -> &'a [u8] {
        if let Self::Due(names) = self
            && let Some(names) = names.get()
        {
            let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
            let mut head = bytes[..end.map_or(0, |end| end + 4)].to_vec();
            names.respell(&mut head);
            *self = Self::Head(head, 0);
        }
        match self {
            Self::Head(head, sent) if *sent < head.len() => &head[*sent..],
            _ => bytes,
        }
    }

    /// Notes that so many bytes were sent.
    pub(super) fn note(&mut self, bytes: usize) {
        if let Self::Head(head, sent) = self {
            *sent += bytes;
            if *sent >= head.len() {
                *self = Self::Over;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESPONSE: &[u8] = b"HTTP/1.1 101 Go\r\netag: 1\r\n\r\netag: 2\r\n\r\netag: 3";

    /// Sends the response to a client that takes so many bytes at a time.
    fn sent(names: Names, at_once: usize) -> String {
        let mut spelling = Spelling::new(names);
        let (mut left, mut sent) = (RESPONSE, Vec::new());
        while !left.is_empty() {
            // One that would block is offered again.
            spelling.spelled(left);
            let offered = spelling.spelled(left);
            let taken = offered.len().min(at_once);
            sent.extend_from_slice(&offered[..taken]);
            spelling.note(taken);
            left = &left[taken..];
        }
        String::from_utf8(sent).expect("it is text")
    }

    #[test]
    fn the_head_alone_is_respelled_however_little_the_client_takes() {
        let respelled = "HTTP/1.1 101 Go\r\nETag: 1\r\n\r\netag: 2\r\n\r\netag: 3";
        for at_once in [1, 2, 20, 100] {
            let names = Names::from(OnceLock::from(FieldNames::new(["ETag"])));
            assert_eq!(sent(names, at_once), respelled, "{at_once}");
            assert_eq!(sent(Names::default(), at_once).as_bytes(), RESPONSE);
        }
    }
}
