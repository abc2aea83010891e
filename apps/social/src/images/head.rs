//! The head of a picture's file, read from its structure before any decoder sees it: nothing is
//! decompressed, and each byte is passed over at most once.

use std::io::{self, BufRead, Seek};

use super::process::PictureError;
use crate::model::Media;

/// The properties of a picture that are known before it is decoded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Head {
    /// The kind of file, by its content.
    pub(super) media: Media,
    /// In pixels, before the orientation is applied.
    pub(super) width: u32,
    /// In pixels, before the orientation is applied.
    pub(super) height: u32,
}

impl Head {
    /// Reads a file of `length` bytes.
    ///
    /// # Errors
    /// [`PictureError::Unknown`], [`PictureError::Truncated`], [`PictureError::Malformed`],
    /// [`PictureError::Read`].
    pub(super) fn read(reader: impl BufRead + Seek, length: u64) -> Result<Self, PictureError> {
        let mut source = Source {
            reader,
            left: length,
        };
        match source.bytes().map_err(|_| PictureError::Unknown)? {
            [0x89, b'P', b'N', b'G'] => png(&mut source),
            [b'G', b'I', b'F', b'8'] => gif(&mut source),
            [b'R', b'I', b'F', b'F'] => webp(&mut source),
            [0xff, 0xd8, 0xff, marker] => jpeg(&mut source, marker),
            _ => Err(PictureError::Unknown),
        }
    }

    /// Returns the number of pixels.
    pub(super) fn pixels(&self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }
}

/// A reader of the rest of a file, forwards only.
struct Source<R> {
    reader: R,
    left: u64,
}

impl<R: BufRead + Seek> Source<R> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], PictureError> {
        let mut bytes = [0; N];
        self.take(N as u64)?;
        self.reader.read_exact(&mut bytes).map_err(damage)?;
        Ok(bytes)
    }

    fn skip(&mut self, bytes: u64) -> Result<(), PictureError> {
        self.take(bytes)?;
        let offset = i64::try_from(bytes).map_err(|_| PictureError::Truncated)?;
        self.reader.seek_relative(offset).map_err(damage)
    }

    fn take(&mut self, bytes: u64) -> Result<(), PictureError> {
        self.left = self
            .left
            .checked_sub(bytes)
            .ok_or(PictureError::Truncated)?;
        Ok(())
    }

    /// Skips all bytes up to the next 0xFF, that one included.
    fn skip_to_ff(&mut self) -> Result<(), PictureError> {
        loop {
            let buffer = self.reader.fill_buf().map_err(damage)?;
            if buffer.is_empty() {
                return Err(PictureError::Truncated);
            }
            let found = buffer.iter().position(|byte| *byte == 0xff);
            let passed = found.map_or(buffer.len(), |at| at + 1);
            self.reader.consume(passed);
            self.take(passed as u64)?;
            if found.is_some() {
                return Ok(());
            }
        }
    }
}

fn damage(error: io::Error) -> PictureError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => PictureError::Truncated,
        _ => PictureError::Read(error),
    }
}

/// Reads a PNG (third edition, 5.3 and 11.2.1): its first chunk is `IHDR`.
fn png<R: BufRead + Seek>(source: &mut Source<R>) -> Result<Head, PictureError> {
    source.skip(4)?;
    let [.., kind0, kind1, kind2, kind3] = source.bytes::<8>()?;
    if [kind0, kind1, kind2, kind3] != *b"IHDR" {
        return Err(PictureError::Malformed("it does not begin with its size"));
    }
    Ok(Head {
        media: Media::Png,
        width: u32::from_be_bytes(source.bytes()?),
        height: u32::from_be_bytes(source.bytes()?),
    })
}

/// Reads a GIF (`GIF89a`, 18 and 20): a screen, and pictures on it.
///
/// Of an animation the first picture counts, since it is the one that is decoded: it may be larger
/// than the screen.
fn gif<R: BufRead + Seek>(source: &mut Source<R>) -> Result<Head, PictureError> {
    source.skip(2)?;
    let screen = little_pair(source.bytes()?);
    let [flags, _, _] = source.bytes()?;
    source.skip(color_table(flags))?;
    loop {
        match source.bytes()? {
            [0x21] => skip_blocks(source)?,
            [0x2c] => break,
            _ => return Err(PictureError::Malformed("there is no picture in it")),
        }
    }
    source.skip(4)?;
    let frame = little_pair(source.bytes()?);
    Ok(Head {
        media: Media::Gif,
        width: screen.0.max(frame.0),
        height: screen.1.max(frame.1),
    })
}

fn color_table(flags: u8) -> u64 {
    if flags & 0x80 == 0 {
        return 0;
    }
    3 << ((flags & 7) + 1)
}

/// Skips an extension: its label, and blocks up to an empty one.
fn skip_blocks<R: BufRead + Seek>(source: &mut Source<R>) -> Result<(), PictureError> {
    source.skip(1)?;
    loop {
        match source.bytes()? {
            [0] => return Ok(()),
            [length] => source.skip(length.into())?,
        }
    }
}

fn little_pair(bytes: [u8; 4]) -> (u32, u32) {
    let [a, b, c, d] = bytes;
    (
        u16::from_le_bytes([a, b]).into(),
        u16::from_le_bytes([c, d]).into(),
    )
}

/// Reads a JPEG (ITU-T T.81, B.1 and B.2): segments, and after each start of a scan its data up to
/// the next marker.
///
/// The whole file is read, to find one that is truncated: a decoder would make the rest of the
/// picture grey, and report no error.
fn jpeg<R: BufRead + Seek>(source: &mut Source<R>, first: u8) -> Result<Head, PictureError> {
    let mut marker = match first {
        0xff => marker_behind_ff(source)?,
        marker => marker,
    };
    let mut size = None;
    loop {
        match marker {
            END_OF_IMAGE => break,
            // Stand-alone markers, or padding: no segment follows.
            0x00 | 0x01 | 0xd0..=0xd8 => {
                source.skip_to_ff()?;
                marker = marker_behind_ff(source)?;
                continue;
            }
            _ => {}
        }
        let length = u16::from_be_bytes(source.bytes()?);
        let Some(mut rest) = u64::from(length).checked_sub(2) else {
            return Err(PictureError::Malformed("a segment has no length"));
        };
        if is_frame(marker) && size.is_none() {
            let [_, h0, h1, w0, w1] = source.bytes()?;
            rest = rest.saturating_sub(5);
            size = Some([[w0, w1], [h0, h1]].map(|part| u32::from(u16::from_be_bytes(part))));
        }
        source.skip(rest)?;
        // A scan's data follows its head; it is skipped together with anything that is not a
        // marker.
        source.skip_to_ff()?;
        marker = marker_behind_ff(source)?;
    }
    let [width, height] = size.ok_or(PictureError::Malformed("there is no picture in it"))?;
    Ok(Head {
        media: Media::Jpeg,
        width,
        height,
    })
}

const END_OF_IMAGE: u8 = 0xd9;

/// Returns `true` for a start of frame, of any process; 0xC4, 0xC8 and 0xCC are something else.
fn is_frame(marker: u8) -> bool {
    matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc)
}

/// Reads a marker, before which any number of 0xFF may stand.
fn marker_behind_ff<R: BufRead + Seek>(source: &mut Source<R>) -> Result<u8, PictureError> {
    loop {
        match source.bytes()? {
            [0xff] => {}
            [marker] => return Ok(marker),
        }
    }
}

/// Reads a WebP (RFC 9649): chunks, the first of which tells the kind of file.
///
/// All must lie within the file, since a decoder reserves the lengths that they claim, and no
/// picture in it may be larger than the canvas, since a decoder compares the two only after
/// decoding.
fn webp<R: BufRead + Seek>(source: &mut Source<R>) -> Result<Head, PictureError> {
    source.skip(4)?;
    if source.bytes()? != *b"WEBP" {
        return Err(PictureError::Unknown);
    }
    let (kind, length) = chunk(source)?;
    let (canvas, extended) = match &kind {
        b"VP8 " | b"VP8L" => (bitstream(source, kind, length)?, false),
        b"VP8X" => (canvas(source, length)?, true),
        _ => return Err(PictureError::Malformed("there is no picture in it")),
    };
    while extended && source.left >= CHUNK_HEAD {
        let (kind, length) = chunk(source)?;
        match &kind {
            b"VP8 " | b"VP8L" => check_within(bitstream(source, kind, length)?, canvas)?,
            // A frame of an animation has chunks of its own after 16 bytes; the loop goes on with
            // them.
            b"ANMF" => source.skip(16)?,
            _ => skip_chunk(source, length, 0)?,
        }
    }
    Ok(Head {
        media: Media::Webp,
        width: canvas.0,
        height: canvas.1,
    })
}

const CHUNK_HEAD: u64 = 8;

fn chunk<R: BufRead + Seek>(source: &mut Source<R>) -> Result<([u8; 4], u64), PictureError> {
    let kind = source.bytes()?;
    let length = u64::from(u32::from_le_bytes(source.bytes()?));
    if length > source.left {
        return Err(PictureError::Truncated);
    }
    Ok((kind, length))
}

/// Skips the unread rest of a chunk, whose length is padded to an even one; the padding of the last
/// chunk may be missing.
fn skip_chunk<R: BufRead + Seek>(
    source: &mut Source<R>,
    length: u64,
    read: u64,
) -> Result<(), PictureError> {
    let rest = (length + length % 2).saturating_sub(read);
    source.skip(rest.min(source.left))
}

fn canvas<R: BufRead + Seek>(
    source: &mut Source<R>,
    length: u64,
) -> Result<(u32, u32), PictureError> {
    let [_, _, _, _, w0, w1, w2, h0, h1, h2] = source.bytes::<10>()?;
    skip_chunk(source, length, 10)?;
    let size = |bytes: [u8; 3]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]) + 1;
    Ok((size([w0, w1, w2]), size([h0, h1, h2])))
}

/// Reads the size that a VP8 (RFC 6386, 9.1) or VP8L (RFC 9649, 3.4) bitstream claims.
fn bitstream<R: BufRead + Seek>(
    source: &mut Source<R>,
    kind: [u8; 4],
    length: u64,
) -> Result<(u32, u32), PictureError> {
    let (size, read) = if kind == *b"VP8L" {
        let [_, a, b, c, d] = source.bytes()?;
        let bits = u32::from_le_bytes([a, b, c, d]);
        (((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1), 5)
    } else {
        source.skip(6)?;
        let (width, height) = little_pair(source.bytes()?);
        ((width & 0x3fff, height & 0x3fff), 10)
    };
    skip_chunk(source, length, read)?;
    Ok(size)
}

fn check_within(size: (u32, u32), canvas: (u32, u32)) -> Result<(), PictureError> {
    if size.0 <= canvas.0 && size.1 <= canvas.1 {
        return Ok(());
    }
    Err(PictureError::Malformed(
        "a picture in it is larger than its canvas",
    ))
}
