//! WebSocket frames (RFC 6455), as a client sees them.

use anyhow::{Context as _, ensure};

/// Longest head of a frame that a server sends.
const HEAD_BYTES_MAX: usize = 10;
const FIN: u8 = 0x80;
const MASKED: u8 = 0x80;
const OPCODE: u8 = 0x0f;
const TEXT: u8 = 0x1;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xa;
/// The length that means: it follows in two bytes.
const TWO_BYTES: u8 = 0x7e;
/// The length that means: it follows in eight bytes.
const EIGHT_BYTES: u8 = 0x7f;
/// Longest payload of control frames.
const CONTROL_BYTES_MAX: usize = 125;

/// A splitter of a connection's bytes into frames, at any boundaries of reads.
#[derive(Debug, Default)]
pub(super) struct Frames {
    head: [u8; HEAD_BYTES_MAX],
    head_length: usize,
    /// Bytes of the payload that are still to come; `None` while the head is read.
    rest: Option<u64>,
    payload: Vec<u8>,
    /// True if the payload of texts is kept.
    keeps_texts: bool,
}

/// A frame that is complete.
#[derive(Debug, PartialEq)]
pub(super) enum Frame<'a> {
    /// Empty if texts are not kept.
    Text(&'a [u8]),
    /// A request for a pong with the same payload.
    Ping(&'a [u8]),
    Close,
    /// A frame of another kind.
    Other,
}

impl Frames {
    /// Makes a splitter. Texts are only counted, unless they are kept.
    pub(super) fn new(keeps_texts: bool) -> Self {
        Self {
            keeps_texts,
            ..Self::default()
        }
    }

    /// Sets if texts are kept from now on.
    pub(super) fn keep_texts(&mut self, keeps_texts: bool) {
        self.keeps_texts = keeps_texts;
    }

    /// Calls `found` with each frame that these bytes complete.
    pub(super) fn feed(
        &mut self,
        mut input: &[u8],
        mut found: impl FnMut(&Frame<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        loop {
            let rest = match self.rest {
                Some(rest) => rest,
                None => match self.read_head(&mut input)? {
                    Some(length) => length,
                    None => return Ok(()),
                },
            };
            let here = usize::try_from(rest).unwrap_or(usize::MAX).min(input.len());
            let (payload, behind) = input.split_at(here);
            if self.is_kept() {
                self.payload.extend_from_slice(payload);
            }
            input = behind;
            let rest = rest - here as u64;
            self.rest = Some(rest);
            if rest > 0 {
                return Ok(());
            }
            found(&self.frame())?;
            self.rest = None;
            self.head_length = 0;
            self.payload.clear();
        }
    }

    /// Returns the length of the payload, once the head is complete.
    fn read_head(&mut self, input: &mut &[u8]) -> anyhow::Result<Option<u64>> {
        loop {
            if let Some(length) = self.payload_length()? {
                return Ok(Some(length));
            }
            let Some((byte, behind)) = input.split_first() else {
                return Ok(None);
            };
            self.head[self.head_length] = *byte;
            self.head_length += 1;
            *input = behind;
        }
    }

    fn payload_length(&self) -> anyhow::Result<Option<u64>> {
        let head = &self.head[..self.head_length];
        let [first, second, extended @ ..] = head else {
            return Ok(None);
        };
        ensure!(second & MASKED == 0, "the server masks a frame");
        ensure!(first & FIN != 0, "the server sends a message in parts");
        Ok(match (*second, extended.len()) {
            (TWO_BYTES, 2) | (EIGHT_BYTES, 8) => {
                let number = extended.iter();
                Some(number.fold(0, |number, byte| number << 8 | u64::from(*byte)))
            }
            (TWO_BYTES | EIGHT_BYTES, _) => None,
            (length, _) => Some(length.into()),
        })
    }

    fn opcode(&self) -> u8 {
        self.head[0] & OPCODE
    }

    fn is_kept(&self) -> bool {
        self.opcode() != TEXT || self.keeps_texts
    }

    fn frame(&self) -> Frame<'_> {
        match self.opcode() {
            TEXT => Frame::Text(&self.payload),
            PING => Frame::Ping(&self.payload),
            CLOSE => Frame::Close,
            _ => Frame::Other,
        }
    }
}

/// Returns a text as a client sends it.
pub(super) fn text(payload: &str) -> anyhow::Result<Vec<u8>> {
    let length = u16::try_from(payload.len()).context("a command of at most 65,535 bytes")?;
    let mut frame = vec![FIN | TEXT];
    match u8::try_from(length) {
        Ok(short) if usize::from(short) <= CONTROL_BYTES_MAX => frame.push(MASKED | short),
        _ => {
            frame.push(MASKED | TWO_BYTES);
            frame.extend(length.to_be_bytes());
        }
    }
    append_masked(&mut frame, payload.as_bytes());
    Ok(frame)
}

/// Returns the pong to a ping.
pub(super) fn pong(payload: &[u8]) -> Vec<u8> {
    let payload = &payload[..payload.len().min(CONTROL_BYTES_MAX)];
    let length = u8::try_from(payload.len()).unwrap_or_default();
    let mut frame = vec![FIN | PONG, MASKED | length];
    append_masked(&mut frame, payload);
    frame
}

/// Appends the payload with a mask of zeros, which is allowed, and changes nothing.
fn append_masked(frame: &mut Vec<u8>, payload: &[u8]) {
    frame.extend([0; 4]);
    frame.extend(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the texts of bytes that arrive in pieces of this size.
    fn texts(bytes: &[u8], size: usize) -> Vec<String> {
        let mut frames = Frames::new(true);
        let mut found = Vec::new();
        for piece in bytes.chunks(size) {
            frames
                .feed(piece, |frame| {
                    found.push(match frame {
                        Frame::Text(text) => String::from_utf8_lossy(text).into_owned(),
                        other => format!("{other:?}"),
                    });
                    Ok(())
                })
                .expect("well-formed");
        }
        found
    }

    #[test]
    fn frames_are_found_however_they_are_torn() {
        let long = "x".repeat(300);
        let mut bytes = b"\x81\x03abc\x89\x01p\x81\x7e\x01\x2c".to_vec();
        bytes.extend(long.as_bytes());
        bytes.extend(b"\x81\x00\x88\x02\x03\xe8");
        let expected = ["abc", "Ping([112])", &long, "", "Close"];
        for size in 1..bytes.len() {
            assert_eq!(texts(&bytes, size), expected, "{size}");
        }
    }

    #[test]
    fn texts_that_are_not_kept_are_counted() {
        let mut count = 0;
        let mut frames = Frames::new(false);
        let counted = frames.feed(b"\x81\x03abc\x81\x01d", |frame| {
            assert_eq!(*frame, Frame::Text(b""));
            count += 1;
            Ok(())
        });
        counted.expect("well-formed");
        assert_eq!(count, 2);
    }

    #[test]
    fn a_command_is_masked() {
        assert_eq!(text("hi").expect("short"), b"\x81\x82\0\0\0\0hi");
        let long = text(&"x".repeat(200)).expect("not too long");
        assert_eq!(long[..8], *b"\x81\xfe\x00\xc8\0\0\0\0");
        assert_eq!(pong(b"p"), b"\x8a\x81\0\0\0\0p");
    }
}
