use crate::event_loop::Tick;

/// Bytes of the preface (RFC 9113, 3.4), which was recognised before the connection was handed
/// over.
const PREFACE_BYTES: usize = 24;
/// Bytes of a frame's header (RFC 9113, 4.1).
const HEADER_BYTES: usize = 9;
/// A connection's window at its beginning (RFC 9113, 6.9.2).
const WINDOW_BYTES: u64 = 65_535;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
/// Of the frames that carry a head, the last has this flag (RFC 9113, 6.2 and 6.10).
const END_HEADERS: u8 = 4;
/// The highest bit of stream numbers and of window increments means nothing (RFC 9113, 4.1 and
/// 6.9).
const RESERVED: u32 = 1 << 31;

/// Follows the frames of one side of a connection: what it has begun and not finished, and its
/// changes to the connection's windows.
///
/// A frame of DATA may take its time, which the pace of its body decides.
#[derive(Debug)]
pub(super) struct Frames {
    preface: usize,
    header: [u8; HEADER_BYTES],
    /// Bytes of the header that are there.
    received: usize,
    /// Bytes of the frame's content that are not there.
    missing: usize,
    kind: u8,
    /// The frame is of no stream.
    is_of_connection: bool,
    /// A head has begun, and `END_HEADERS` has not come.
    in_head: bool,
    unfinished_since: Option<Tick>,
    /// Bytes of the head that is unfinished.
    head_bytes: usize,
    increment: u32,
    /// Bytes of DATA so far, padding included, as windows count them.
    data_bytes: u64,
    /// By how much the connection's window was opened for the other side.
    opened: u64,
}

impl Frames {
    /// Of a client, which begins with the preface.
    pub(super) fn of_client() -> Self {
        Self {
            preface: PREFACE_BYTES,
            ..Self::of_server()
        }
    }

    pub(super) fn of_server() -> Self {
        Self {
            preface: 0,
            header: [0; HEADER_BYTES],
            received: 0,
            missing: 0,
            kind: DATA,
            is_of_connection: false,
            in_head: false,
            unfinished_since: None,
            head_bytes: 0,
            increment: 0,
            data_bytes: 0,
            opened: 0,
        }
    }

    /// Returns the tick since which a head, or a frame other than DATA, has been unfinished.
    pub(super) fn unfinished_since(&self) -> Option<Tick> {
        self.unfinished_since
    }

    /// Bytes of a head that is unfinished.
    pub(super) fn head_bytes(&self) -> usize {
        self.head_bytes
    }

    /// Bytes of DATA so far.
    pub(super) fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    /// Bytes of DATA that this side has let the other send so far, over all streams.
    pub(super) fn window(&self) -> u64 {
        WINDOW_BYTES + self.opened
    }

    /// Notes what came next.
    pub(super) fn note(&mut self, mut bytes: &[u8], now: Tick) {
        let preface = bytes.len().min(self.preface);
        self.preface -= preface;
        bytes = &bytes[preface..];
        while !bytes.is_empty() {
            if self.missing > 0 {
                self.note_content(&mut bytes);
            } else {
                self.note_header(&mut bytes);
            }
            if !self.is_unfinished() {
                self.unfinished_since = None;
                self.head_bytes = 0;
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
        let [a, b, c, kind, flags, stream @ ..] = self.header;
        self.received = 0;
        self.missing = u32::from_be_bytes([0, a, b, c]) as usize;
        self.kind = kind;
        self.is_of_connection = u32::from_be_bytes(stream) & !RESERVED == 0;
        if matches!(kind, HEADERS | CONTINUATION) {
            self.in_head = flags & END_HEADERS == 0;
        }
    }

    fn note_content(&mut self, bytes: &mut &[u8]) {
        let length = bytes.len().min(self.missing);
        let (part, rest) = bytes.split_at(length);
        self.missing -= length;
        *bytes = rest;
        match self.kind {
            DATA => self.data_bytes += length as u64,
            HEADERS | CONTINUATION => self.head_bytes += length,
            WINDOW_UPDATE if self.is_of_connection => {
                for byte in part {
                    self.increment = self.increment << 8 | u32::from(*byte);
                }
                if self.missing == 0 {
                    let increment = std::mem::take(&mut self.increment);
                    self.opened += u64::from(increment & !RESERVED);
                }
            }
            _ => {}
        }
    }

    fn is_unfinished(&self) -> bool {
        self.in_head || self.received > 0 || (self.missing > 0 && self.kind != DATA)
    }
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
        let mut frames = Frames::of_client();
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

    #[test]
    fn rfc9113_6_9_windows_open_by_updates_and_are_used_up_by_data() {
        let mut sent = vec![0, 0, 4, WINDOW_UPDATE, 0, 0, 0, 0, 0, 0x80, 0, 1, 2];
        sent.extend([0, 0, 4, WINDOW_UPDATE, 0, 0, 0, 0, 1, 0, 0, 0, 9]);
        sent.extend(frame(DATA, 0, 100));
        sent.extend(frame(HEADERS, 0, 7));
        for at_a_time in [1, 3, sent.len()] {
            let mut frames = after_preface();
            for bytes in sent.chunks(at_a_time) {
                frames.note(bytes, 1);
            }
            assert_eq!(frames.window(), 65_535 + 0x102);
            assert_eq!((frames.data_bytes(), frames.head_bytes()), (100, 7));
        }
    }
}
