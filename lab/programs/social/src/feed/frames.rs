//! WebSocket frames (RFC 6455), as a client sees them.

use std::io::Cursor;

use anyhow::{Context as _, ensure};
use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

/// Bytes of the longest header of a frame.
const HEADER_BYTES_MAX: usize = 14;
pub(super) const TEXT: OpCode = OpCode::Data(Data::Text);

/// A splitter of a connection's bytes into frames, at any boundaries of reads.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// The begin of an incomplete header.
    header: Vec<u8>,
    /// The kind of the frame whose header was read, and its bytes that are still to come.
    begun: Option<(OpCode, u64)>,
    payload: Vec<u8>,
    /// True if texts have no payload: they are only counted.
    pub(super) skips_texts: bool,
}

impl Frames {
    /// Calls `found` with each frame that these bytes complete.
    pub(super) fn feed(
        &mut self,
        mut input: &[u8],
        mut found: impl FnMut(OpCode, &[u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        loop {
            if self.begun.is_none() {
                self.begun = self.read_header(&mut input)?;
            }
            let Some((opcode, rest)) = &mut self.begun else {
                return Ok(());
            };
            let here = usize::try_from(*rest)
                .unwrap_or(usize::MAX)
                .min(input.len());
            let (payload, behind) = input.split_at(here);
            if *opcode != TEXT || !self.skips_texts {
                self.payload.extend_from_slice(payload);
            }
            input = behind;
            *rest -= here as u64;
            if *rest > 0 {
                return Ok(());
            }
            found(*opcode, &self.payload)?;
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

/// Returns a frame with a mask of zeros, which is allowed, and changes nothing.
pub(super) fn masked(opcode: OpCode, payload: &[u8]) -> anyhow::Result<Vec<u8>> {
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

    #[test]
    fn frames_are_found_however_they_are_torn() {
        let long = "x".repeat(300);
        let mut bytes = b"\x81\x03abc\x89\x01p\x81\x7e\x01\x2c".to_vec();
        bytes.extend(long.as_bytes());
        bytes.extend(b"\x81\x00\x88\x02\x03\xe8");
        for (size, skips_texts) in (1..bytes.len()).flat_map(|size| [(size, false), (size, true)]) {
            let mut frames = Frames {
                skips_texts,
                ..Frames::default()
            };
            let mut found = Vec::new();
            for piece in bytes.chunks(size) {
                let each = frames.feed(piece, |opcode, payload| {
                    found.push((opcode == TEXT, payload.len()));
                    Ok(())
                });
                each.expect("well-formed");
            }
            let text = |length: usize| (true, if skips_texts { 0 } else { length });
            let expected = [text(3), (false, 1), text(300), text(0), (false, 2)];
            assert_eq!(found, expected, "{size}");
        }
    }

    #[test]
    fn a_command_is_masked() {
        assert_eq!(masked(TEXT, b"hi").expect("short"), b"\x81\x82\0\0\0\0hi");
        let long = masked(TEXT, &[b'x'; 200]).expect("not too long");
        assert_eq!(long[..8], *b"\x81\xfe\x00\xc8\0\0\0\0");
    }
}
