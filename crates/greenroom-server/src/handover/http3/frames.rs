use bytes::{Bytes, BytesMut};

/// Frames of this type carry content (RFC 9114, 7.2.1). Any length will do.
const DATA: u64 = 0;
/// Frames of this type carry a head or trailers (RFC 9114, 7.2.2).
const HEADERS: u64 = 1;
/// Streams of one direction that begin so carry the frames of the connection (RFC 9114, 6.2.1).
const CONTROL: u64 = 0;
/// Most bytes of a frame of the connection. It has a few settings at most.
const CONTROL_BYTES_MAX: u64 = 16 * 1_024;

/// Follows the frames of a stream, and passes them on piece by piece: a frame as a whole, or the
/// header of one with content, or content. h3 gathers each frame as a whole, but for content, also
/// one that it does not know, so one that is too long must not come to it. And it looks at all that
/// it has gathered again with each part, and reads on while it has something: parts of frames must
/// not come to it either, nor two pieces at once.
#[derive(Debug)]
pub(super) struct Frames {
    at: At,
    number: Number,
    frame_type: u64,
    /// Bytes of the frame's content that are not there.
    missing: u64,
    bytes_max: u64,
    /// The frames of a head or of trailers so far.
    heads: u64,
    /// Bytes that came and were not looked at.
    rest: Bytes,
    /// Bytes that came of a piece that is not whole.
    begun: BytesMut,
}

/// A frame is longer than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    StreamType,
    FrameType,
    Length,
    Content,
    /// A stream without frames, which h3 leaves unread.
    Other,
}

/// An integer of QUIC (RFC 9000, 16), as far as it came.
#[derive(Debug, Default)]
struct Number {
    value: u64,
    /// Bytes that are not there; none before the first.
    missing: usize,
}

impl Number {
    /// Takes bytes of it: the number, if it is whole.
    fn read(&mut self, bytes: &mut &[u8]) -> Option<u64> {
        while let Some((&byte, rest)) = bytes.split_first() {
            *bytes = rest;
            if self.missing == 0 {
                // The two highest bits are the logarithm of the length.
                self.missing = 1 << (byte >> 6);
                self.value = u64::from(byte & 0x3f);
            } else {
                self.value = self.value << 8 | u64::from(byte);
            }
            self.missing -= 1;
            if self.missing == 0 {
                return Some(self.value);
            }
        }
        None
    }
}

impl Frames {
    /// Of a request, whose head may have so many bytes in its frame.
    pub(super) fn of_request(head_bytes_max: usize) -> Self {
        Self::new(At::FrameType, head_bytes_max as u64)
    }

    /// Of a stream of one direction.
    pub(super) fn of_one_direction() -> Self {
        Self::new(At::StreamType, CONTROL_BYTES_MAX)
    }

    fn new(at: At, bytes_max: u64) -> Self {
        Self {
            at,
            number: Number::default(),
            frame_type: DATA,
            missing: 0,
            bytes_max,
            heads: 0,
            rest: Bytes::new(),
            begun: BytesMut::new(),
        }
    }

    /// Returns `true` if it has none.
    pub(super) fn are_none(&self) -> bool {
        self.at == At::Other
    }

    /// Returns `true` between the bytes of a frame's content, where a stream must not end.
    pub(super) fn is_in_content(&self) -> bool {
        self.at == At::Content && self.frame_type == DATA
    }

    /// Takes what came next. There must be no more pieces of what came before.
    pub(super) fn add(&mut self, chunk: Bytes) {
        debug_assert!(self.rest.is_empty(), "pieces come in their order");
        self.rest = chunk;
    }

    /// Returns the next piece, if it is whole. One without a byte means nothing.
    pub(super) fn next_piece(&mut self) -> Result<Option<Bytes>, TooLong> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        if self.are_none() {
            return Ok(Some(std::mem::take(&mut self.rest)));
        }
        if self.is_in_content() {
            let length = self.pass(self.rest.len());
            return Ok(Some(self.rest.split_to(length)));
        }
        let (length, is_whole) = self.follow()?;
        let part = self.rest.split_to(length);
        if is_whole && self.begun.is_empty() {
            return Ok(Some(self.unless_empty(part)));
        }
        self.begun.extend_from_slice(&part);
        if !is_whole {
            return Ok(None);
        }
        let piece = std::mem::take(&mut self.begun).freeze();
        Ok(Some(self.unless_empty(piece)))
    }

    /// Takes what came of a piece that will not become whole, since the stream has ended.
    pub(super) fn take_cut(&mut self) -> Option<Bytes> {
        let cut = std::mem::take(&mut self.begun);
        (!cut.is_empty()).then(|| cut.freeze())
    }

    /// Drops a frame of content without a byte, where content may be: h3 would take it for the end
    /// of all.
    fn unless_empty(&self, piece: Bytes) -> Bytes {
        let is_empty = self.at == At::FrameType && self.frame_type == DATA && self.heads == 1;
        if is_empty { Bytes::new() } else { piece }
    }

    /// Follows what came up to the end of a piece: the length, and whether the piece is whole.
    fn follow(&mut self) -> Result<(usize, bool), TooLong> {
        let rest = self.rest.clone();
        let mut bytes = &rest[..];
        loop {
            if self.at == At::Content {
                let length = rest.len() - bytes.len() + self.pass(bytes.len());
                return Ok((length, self.at != At::Content));
            }
            let Some(number) = self.number.read(&mut bytes) else {
                return Ok((rest.len(), false));
            };
            let before = self.at;
            self.at = self.behind(number)?;
            if before == At::StreamType || self.is_in_content() || self.at == At::FrameType {
                return Ok((rest.len() - bytes.len(), true));
            }
        }
    }

    /// Passes over content, up to so many bytes: how many it was.
    fn pass(&mut self, bytes: usize) -> usize {
        let missing = usize::try_from(self.missing).unwrap_or(usize::MAX);
        let length = missing.min(bytes);
        self.missing -= length as u64;
        if self.missing == 0 {
            self.at = At::FrameType;
        }
        length
    }

    fn behind(&mut self, number: u64) -> Result<At, TooLong> {
        Ok(match self.at {
            At::StreamType if number == CONTROL => At::FrameType,
            At::FrameType => {
                self.frame_type = number;
                self.heads += u64::from(number == HEADERS);
                At::Length
            }
            At::Length if self.frame_type != DATA && number > self.bytes_max => {
                return Err(TooLong);
            }
            At::Length if number > 0 => {
                self.missing = number;
                At::Content
            }
            At::Length => At::FrameType,
            At::StreamType | At::Content | At::Other => At::Other,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

    use super::*;

    /// The pieces of these bytes, of which so many come at a time.
    fn pieces(frames: &mut Frames, bytes: &[u8], at_once: usize) -> Result<Vec<Bytes>, TooLong> {
        let mut pieces = Vec::new();
        for chunk in bytes.chunks(at_once) {
            frames.add(Bytes::copy_from_slice(chunk));
            while let Some(piece) = frames.next_piece()? {
                pieces.push(piece);
            }
        }
        Ok(pieces)
    }

    fn refused(mut frames: Frames, bytes: &[u8], at_once: usize) -> bool {
        pieces(&mut frames, bytes, at_once) == Err(TooLong)
    }

    /// A frame with a length of four bytes.
    fn frame(kind: u8, content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len()).unwrap() | 0x8000_0000;
        [&[kind][..], &length.to_be_bytes(), content].concat()
    }

    const HEAD: u8 = 1;
    const UNKNOWN: u8 = 0x21;

    #[test]
    fn a_head_may_be_as_long_as_allowed_and_content_any() {
        let head = |length: usize| frame(HEAD, &vec![7; length]);
        let content = frame(0, &[1; 0x1000]);
        for at_once in [1, 2, 3, 1_000, 10_000] {
            let whole = [head(100), content.clone(), head(100)].concat();
            assert!(!refused(Frames::of_request(100), &whole, at_once));
            let too_long = [head(100), content.clone(), head(101)].concat();
            assert!(refused(Frames::of_request(100), &too_long, at_once));
        }
    }

    #[test]
    fn what_is_not_known_may_not_be_longer_than_a_head() {
        let unknown = [0x21, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        assert!(refused(Frames::of_request(1_000), &unknown, 1));
    }

    #[test]
    fn rfc9114_6_2_only_a_control_stream_has_frames() {
        let settings = [4, 0x80, 1, 0, 0];
        let control = [&[0][..], &settings].concat();
        assert!(refused(Frames::of_one_direction(), &control, 2));
        let encoder = [&[2][..], &settings].concat();
        let mut frames = Frames::of_one_direction();
        let passed = pieces(&mut frames, &encoder, 2).unwrap();
        assert_eq!(passed.concat(), encoder);
        assert_eq!(passed[0], [2][..], "the type comes by itself");
    }

    #[test]
    fn a_head_that_comes_byte_by_byte_is_one_piece() {
        let head = frame(HEAD, &vec![7; 128 * 1_024]);
        let mut frames = Frames::of_request(128 * 1_024);
        assert_eq!(pieces(&mut frames, &head, 1).unwrap(), [&head[..]]);
        let control = [vec![0], frame(4, &[6; 1_000]), frame(UNKNOWN, &[])].concat();
        let mut frames = Frames::of_one_direction();
        let passed = pieces(&mut frames, &control, 1).unwrap();
        let lengths: Vec<_> = passed.iter().map(Bytes::len).collect();
        assert_eq!((passed.concat(), lengths), (control, vec![1, 1_005, 5]));
    }

    #[test]
    fn frames_are_whole_wherever_they_are_split() {
        let parts = [
            frame(HEAD, b"the head"),
            frame(UNKNOWN, &[]),
            frame(0, b"content")[..5].to_vec(),
            b"content".to_vec(),
            frame(UNKNOWN, b"unknown"),
            frame(0, b"more")[..5].to_vec(),
            b"more".to_vec(),
            frame(HEAD, b"trailers"),
        ];
        let whole = parts.concat();
        for first in 0..=whole.len() {
            for second in first..=whole.len() {
                let mut frames = Frames::of_request(100);
                let mut passed = Vec::new();
                for chunk in [&whole[..first], &whole[first..second], &whole[second..]] {
                    passed.extend(pieces(&mut frames, chunk, 100).unwrap());
                }
                assert_eq!(passed.concat(), whole);
                // Content comes as it came.
                let is_frame = |part: &&Vec<u8>| part[0] < b'a';
                for part in parts.iter().filter(is_frame) {
                    assert!(passed.contains(&Bytes::copy_from_slice(part)), "{part:?}");
                }
                assert_eq!(frames.take_cut(), None);
            }
        }
    }

    #[test]
    fn content_is_not_copied() {
        let mut frames = Frames::of_request(100);
        let head = frame(HEAD, &[7; 90]);
        assert_eq!(pieces(&mut frames, &head[..50], 50), Ok(vec![]));
        let rest = [&head[50..], &frame(0, &[1; 1_000])].concat();
        let chunk = Bytes::from(rest);
        frames.add(chunk.clone());
        assert_eq!(frames.next_piece().unwrap().unwrap(), head);
        assert_eq!(frames.next_piece().unwrap().unwrap().len(), 5);
        let content = frames.next_piece().unwrap().unwrap();
        assert_eq!(content.as_ptr(), chunk[chunk.len() - 1_000..].as_ptr());
        assert_eq!(content.len(), 1_000);
    }

    #[test]
    fn what_the_end_of_a_stream_cuts_is_passed_on_and_known() {
        let whole = [frame(HEAD, b"the head"), frame(0, b"content")].concat();
        let head = frame(HEAD, b"the head").len();
        for length in 1..whole.len() {
            let mut frames = Frames::of_request(100);
            let mut passed = pieces(&mut frames, &whole[..length], 3).unwrap();
            passed.extend(frames.take_cut());
            assert_eq!(passed.concat(), whole[..length], "{length}");
            assert_eq!(frames.is_in_content(), length >= head + 5, "{length}");
            assert_eq!(frames.next_piece(), Ok(None));
        }
    }

    #[test]
    fn content_without_a_byte_means_nothing_between_a_head_and_trailers() {
        let (head, empty) = (frame(HEAD, b"the head"), vec![0, 0]);
        let whole = [head.clone(), empty.clone(), head, empty.clone()].concat();
        let mut frames = Frames::of_request(100);
        let passed = pieces(&mut frames, &whole, 1).unwrap();
        assert_eq!(passed[1], Bytes::new());
        assert_eq!(passed[3], empty, "it is a fault there");
    }
}
