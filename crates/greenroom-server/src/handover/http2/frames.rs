use crate::event_loop::Tick;

/// Bytes of the preface (RFC 9113, 3.4), which was recognised before the connection was handed over.
const PREFACE_BYTES: usize = 24;
/// Bytes of a frame's header (RFC 9113, 4.1).
const HEADER_BYTES: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
/// Of the frames that carry a head, the last has this flag (RFC 9113, 6.2 and 6.10).
const END_HEADERS: u8 = 4;

/// Follows where in its frames a client is: whether it has begun something that it does not finish.
///
/// A frame of DATA may take its time, which the pace of its request's body decides.
#[derive(Debug)]
pub(super) struct Frames {
    preface: usize,
    header: [u8; HEADER_BYTES],
    /// Bytes of the header that are there.
    received: usize,
    /// Bytes of the frame's content that are not there.
    missing: usize,
    is_data: bool,
    /// A head has begun, and `END_HEADERS` has not come.
    in_head: bool,
    unfinished_since: Option<Tick>,
}

impl Default for Frames {
    fn default() -> Self {
        Self {
            preface: PREFACE_BYTES,
            header: [0; HEADER_BYTES],
            received: 0,
            missing: 0,
            is_data: false,
            in_head: false,
            unfinished_since: None,
        }
    }
}

impl Frames {
    /// Since when a head, or a frame other than DATA, has been unfinished.
    pub(super) fn unfinished_since(&self) -> Option<Tick> {
        self.unfinished_since
    }

    /// Notes what the client sent next.
    pub(super) fn note(&mut self, mut bytes: &[u8], now: Tick) {
        skip(&mut bytes, &mut self.preface);
        while !bytes.is_empty() {
            if self.missing > 0 {
                skip(&mut bytes, &mut self.missing);
            } else {
                self.note_header(&mut bytes);
            }
            if !self.is_unfinished() {
                self.unfinished_since = None;
            }
        }
        if self.is_unfinished() {
            self.unfinished_since.get_or_insert(now);
        }
    }

    fn note_header(&mut self, bytes: &mut &[u8]) {
        let length = bytes.len().min(HEADER_BYTES - self.received);
        let (part, rest) = bytes.split_at(length);
        self.header[self.received..][..length].copy_from_slice(part);
        self.received += length;
        *bytes = rest;
        if self.received < HEADER_BYTES {
            return;
        }
        let [a, b, c, kind, flags, ..] = self.header;
        self.received = 0;
        self.missing = u32::from_be_bytes([0, a, b, c]) as usize;
        self.is_data = kind == DATA;
        if matches!(kind, HEADERS | CONTINUATION) {
            self.in_head = flags & END_HEADERS == 0;
        }
    }

    fn is_unfinished(&self) -> bool {
        self.in_head || self.received > 0 || (self.missing > 0 && !self.is_data)
    }
}

/// Passes over as many bytes as there are of those that `missing` counts.
fn skip(bytes: &mut &[u8], missing: &mut usize) {
    let length = bytes.len().min(*missing);
    *bytes = &bytes[length..];
    *missing -= length;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, length: u8) -> Vec<u8> {
        let mut frame = vec![0, 0, length, kind, flags, 0, 0, 0, 1];
        frame.resize(HEADER_BYTES + usize::from(length), b'x');
        frame
    }

    fn after_preface() -> Frames {
        let mut frames = Frames::default();
        frames.note(&[b'p'; PREFACE_BYTES], 0);
        frames
    }

    #[test]
    fn rfc9113_6_2_a_head_is_unfinished_until_end_headers() {
        let mut frames = after_preface();
        frames.note(&frame(HEADERS, 0, 5), 1);
        assert_eq!(frames.unfinished_since(), Some(1));
        frames.note(&frame(CONTINUATION, 0, 5), 2);
        assert_eq!(frames.unfinished_since(), Some(1));
        frames.note(&frame(CONTINUATION, END_HEADERS, 5), 3);
        assert_eq!(frames.unfinished_since(), None);
    }

    #[test]
    fn each_unfinished_frame_counts_from_its_own_beginning() {
        let head = frame(HEADERS, END_HEADERS, 40);
        let mut frames = after_preface();
        for now in 1..100 {
            // The end of one and the beginning of the next.
            frames.note(&head[20..], now);
            frames.note(&head[..20], now);
            if now == 1 {
                frames = after_preface();
                frames.note(&head[..20], now);
            }
            assert_eq!(frames.unfinished_since(), Some(now));
        }
    }

    #[test]
    fn data_may_take_its_time() {
        let mut frames = after_preface();
        frames.note(&frame(DATA, 0, 100)[..50], 1);
        assert_eq!(frames.unfinished_since(), None);
        frames.note(&[b'x'; 58], 2);
        assert_eq!(frames.unfinished_since(), None);
        frames.note(&[b'x'; 1 + 8], 3);
        assert_eq!(frames.unfinished_since(), Some(3));
    }
}
