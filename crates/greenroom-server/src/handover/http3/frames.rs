/// Frames of this type carry content (RFC 9114, 7.2.1). Any length will do.
const DATA: u64 = 0;
/// Streams of one direction that begin so carry the frames of the connection (RFC 9114, 6.2.1).
const CONTROL: u64 = 0;
/// Most bytes of a frame of the connection. It has a few settings at most.
const CONTROL_BYTES_MAX: u64 = 16 * 1_024;

/// Follows the frames of a stream, as they are read. h3 gathers each frame as a whole, but for
/// content, also one that it does not know, so one that is too long must not come to it.
#[derive(Debug)]
pub(super) struct Frames {
    at: At,
    number: Number,
    frame_type: u64,
    /// Bytes of the frame's content that are not there.
    missing: u64,
    bytes_max: u64,
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
        }
    }

    /// Returns `true` if it has none.
    pub(super) fn are_none(&self) -> bool {
        self.at == At::Other
    }

    /// Notes what came next.
    pub(super) fn note(&mut self, mut bytes: &[u8]) -> Result<(), TooLong> {
        while !bytes.is_empty() && self.at != At::Other {
            if self.at == At::Content {
                let length = self.missing.min(bytes.len() as u64);
                bytes = bytes
                    .split_at(usize::try_from(length).unwrap_or(bytes.len()))
                    .1;
                self.missing -= length;
                if self.missing == 0 {
                    self.at = At::FrameType;
                }
            } else if let Some(number) = self.number.read(&mut bytes) {
                self.at = self.behind(number)?;
            }
        }
        Ok(())
    }

    fn behind(&mut self, number: u64) -> Result<At, TooLong> {
        Ok(match self.at {
            At::StreamType if number == CONTROL => At::FrameType,
            At::FrameType => {
                self.frame_type = number;
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
    use super::*;

    const HEADERS: u8 = 1;

    /// Notes the bytes, so many at a time.
    fn noted(mut frames: Frames, bytes: &[u8], at_once: usize) -> Result<(), TooLong> {
        bytes.chunks(at_once).try_for_each(|part| frames.note(part))
    }

    #[test]
    fn a_head_may_be_as_long_as_allowed_and_content_any() {
        let head = |length: u8| [&[HEADERS, 0x40, length][..], &[7; 100]].concat();
        let mut content = vec![0, 0x80, 0, 0x10, 0];
        content.resize(5 + 0x1000, 1);
        for at_once in [1, 2, 3, 1_000, 10_000] {
            let whole = [head(100), content.clone(), head(100)].concat();
            assert_eq!(noted(Frames::of_request(100), &whole, at_once), Ok(()));
            let too_long = [head(100), content.clone(), head(101)].concat();
            let refused = noted(Frames::of_request(100), &too_long, at_once);
            assert_eq!(refused, Err(TooLong));
        }
    }

    #[test]
    fn what_is_not_known_may_not_be_longer_than_a_head() {
        let unknown = [0x21, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        let refused = noted(Frames::of_request(1_000), &unknown, 1);
        assert_eq!(refused, Err(TooLong));
    }

    #[test]
    fn rfc9114_6_2_only_a_control_stream_has_frames() {
        let settings = [4, 0x80, 1, 0, 0];
        let control = [&[0][..], &settings].concat();
        let refused = noted(Frames::of_one_direction(), &control, 2);
        assert_eq!(refused, Err(TooLong));
        let encoder = [&[2][..], &settings].concat();
        assert_eq!(noted(Frames::of_one_direction(), &encoder, 2), Ok(()));
    }
}
