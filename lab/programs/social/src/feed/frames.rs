//! WebSocket frames (RFC 6455), as a client sees them.

use std::io::Cursor;

use anyhow::{Context as _, ensure};
use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Control, Data, OpCode};

/// Bytes of the longest header of a frame.
const HEADER_BYTES_MAX: usize = 14;
/// Bytes of the longest payload of control frames.
const CONTROL_BYTES_MAX: usize = 125;
const TEXT: OpCode = OpCode::Data(Data::Text);

/// A splitter of a connection's bytes into frames, at any boundaries of reads.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// The begin of an incomplete header.
    header: Vec<u8>,
    /// The kind of the frame whose header was read, and the bytes of its payload that are still to
    /// come.
    begun: Option<(OpCode, u64)>,
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
    /// Creates a splitter. Texts are only counted, unless they are kept.
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
            let begun = match self.begun {
                Some(begun) => Some(begun),
                None => self.read_header(&mut input)?,
            };
            let Some((opcode, rest)) = begun else {
                return Ok(());
            };
            let here = usize::try_from(rest).unwrap_or(usize::MAX).min(input.len());
            let (payload, behind) = input.split_at(here);
            if opcode != TEXT || self.keeps_texts {
                self.payload.extend_from_slice(payload);
            }
            input = behind;
            let rest = rest - here as u64;
            self.begun = Some((opcode, rest));
            if rest > 0 {
                return Ok(());
            }
            found(&match opcode {
                TEXT => Frame::Text(&self.payload),
                OpCode::Control(Control::Ping) => Frame::Ping(&self.payload),
                OpCode::Control(Control::Close) => Frame::Close,
                _ => Frame::Other,
            })?;
            self.begun = None;
            self.payload.clear();
        }
    }

    /// Returns a frame's kind and the length of its payload, once its header is complete.
    fn read_header(&mut self, input: &mut &[u8]) -> anyhow::Result<Option<(OpCode, u64)>> {
        let before = self.header.len();
        let more = input.len().min(HEADER_BYTES_MAX - before);
        self.header.extend_from_slice(&input[..more]);
        let mut cursor = Cursor::new(&self.header);
        let Some((header, length)) = FrameHeader::parse(&mut cursor)? else {
            *input = &[];
            return Ok(None);
        };
        ensure!(header.mask.is_none(), "the server masks a frame");
        ensure!(header.is_final, "the server sends a message in fragments");
        *input = &input[usize::try_from(cursor.position())? - before..];
        self.header.clear();
        Ok(Some((header.opcode, length)))
    }
}

/// Returns a text as a client sends it.
pub(super) fn text(payload: &str) -> anyhow::Result<Vec<u8>> {
    masked(TEXT, payload.as_bytes())
}

/// Returns the pong to a ping.
pub(super) fn pong(payload: &[u8]) -> anyhow::Result<Vec<u8>> {
    let payload = &payload[..payload.len().min(CONTROL_BYTES_MAX)];
    masked(OpCode::Control(Control::Pong), payload)
}

/// Returns a frame with a mask of zeros, which is allowed, and changes nothing.
fn masked(opcode: OpCode, payload: &[u8]) -> anyhow::Result<Vec<u8>> {
    let header = FrameHeader {
        opcode,
        mask: Some([0; 4]),
        ..FrameHeader::default()
    };
    let mut frame = Vec::with_capacity(HEADER_BYTES_MAX + payload.len());
    header
        .format(payload.len() as u64, &mut frame)
        .context("a frame's header")?;
    frame.extend(payload);
    Ok(frame)
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
    fn a_command_is_masked() {
        assert_eq!(text("hi").expect("short"), b"\x81\x82\0\0\0\0hi");
        let long = text(&"x".repeat(200)).expect("not too long");
        assert_eq!(long[..8], *b"\x81\xfe\x00\xc8\0\0\0\0");
        assert_eq!(pong(b"p").expect("short"), b"\x8a\x81\0\0\0\0p");
    }
}
