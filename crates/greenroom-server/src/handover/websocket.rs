//! The framing of a WebSocket, as far as it takes to end one politely (RFC 6455, 5.2 and 7.4.1).

use crate::drain::Phase;

/// A close frame with status 1001, "going away": the server is ending.
const GOING_AWAY: &[u8] = &[0x88, 0x02, 0x03, 0xe9];
/// A close frame with status 1012, "service restart": the client may come back at once (IANA's
/// registry of close codes).
const SERVICE_RESTART: &[u8] = &[0x88, 0x02, 0x03, 0xf4];

/// Returns the close frame of a server in this phase, which is not that of serving.
pub(super) fn close_frame(phase: Phase) -> &'static [u8] {
    match phase {
        Phase::HandingOver => SERVICE_RESTART,
        Phase::Serving | Phase::Draining | Phase::Ending => GOING_AWAY,
    }
}

/// Bytes of a handshake's response that are looked at.
const HEAD_BYTES_MAX: usize = 16 * 1_024;
/// The longest header of an unmasked frame.
const HEADER_BYTES_MAX: usize = 10;

/// The output of a connection, so far as it matters for putting a frame of our own between its
/// frames.
#[derive(Debug)]
pub(super) enum Written {
    /// Part of the head of its response.
    Head(Vec<u8>),
    /// A WebSocket's frames.
    Frames(Frames),
    /// Anything else.
    Other,
}

/// The writer's position in a stream of unmasked frames.
#[derive(Debug, Default)]
pub(super) struct Frames {
    header: [u8; HEADER_BYTES_MAX],
    header_bytes: usize,
    payload_left: u64,
}

impl Written {
    pub(super) fn note(&mut self, bytes: &[u8]) {
        match self {
            Self::Head(head) => {
                head.extend_from_slice(bytes);
                let end = head.windows(4).position(|four| four == b"\r\n\r\n");
                let Some(end) = end else {
                    if head.len() > HEAD_BYTES_MAX {
                        *self = Self::Other;
                    }
                    return;
                };
                let (head, rest) = head.split_at(end + 4);
                if !is_handshake(head) {
                    *self = Self::Other;
                    return;
                }
                let mut frames = Frames::default();
                frames.note(rest);
                *self = Self::Frames(frames);
            }
            Self::Frames(frames) => frames.note(bytes),
            Self::Other => {}
        }
    }

    /// Returns `true` if a frame may be put here.
    pub(super) fn is_between_frames(&self) -> bool {
        match self {
            Self::Frames(frames) => frames.header_bytes == 0 && frames.payload_left == 0,
            Self::Head(_) | Self::Other => false,
        }
    }
}

/// Returns `true` if `head` is the response that begins a WebSocket (RFC 6455, 4.2.2).
fn is_handshake(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head).to_ascii_lowercase();
    let mut lines = text.split("\r\n");
    let switches = lines
        .next()
        .is_some_and(|line| line.starts_with("http/1.1 101"));
    switches
        && lines.any(|line| {
            line.strip_prefix("upgrade:")
                .is_some_and(|value| value.trim() == "websocket")
        })
}

impl Frames {
    fn note(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.payload_left > 0 {
                let taken = usize::try_from(self.payload_left)
                    .map_or(bytes.len(), |left| left.min(bytes.len()));
                self.payload_left -= taken as u64;
                bytes = &bytes[taken..];
                continue;
            }
            self.header[self.header_bytes] = bytes[0];
            self.header_bytes += 1;
            bytes = &bytes[1..];
            if let Some(length) = payload_length(&self.header[..self.header_bytes]) {
                self.payload_left = length;
                self.header_bytes = 0;
            }
        }
    }
}

/// The length in a frame's header, if that is complete.
fn payload_length(header: &[u8]) -> Option<u64> {
    let (_, rest) = header.split_first()?;
    let (&length, extended) = rest.split_first()?;
    match (length & 0x7f, extended) {
        (126, &[high, low]) => Some(u64::from(u16::from_be_bytes([high, low]))),
        (126, _) => None,
        (127, extended) => extended.try_into().map(u64::from_be_bytes).ok(),
        (length, _) => Some(u64::from(length)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HANDSHAKE: &[u8] =
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n";

    fn written(bytes: &[u8]) -> Written {
        let mut written = Written::Head(Vec::new());
        for byte in bytes {
            written.note(&[*byte]);
        }
        written
    }

    #[test]
    fn rfc6455_4_2_2_frames_begin_after_the_handshake() {
        assert!(written(HANDSHAKE).is_between_frames());
        assert!(!written(&HANDSHAKE[..20]).is_between_frames());
        assert!(!written(b"HTTP/1.1 200 OK\r\n\r\n").is_between_frames());
    }

    #[test]
    fn rfc6455_5_2_lengths_of_one_three_and_nine_bytes() {
        let short = [&[0x81, 3][..], b"abc"].concat();
        let middle = [&[0x82, 126, 1, 0][..], &[7; 256]].concat();
        let long = [&[0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0][..], &vec![7; 65_536]].concat();
        for frame in [short, middle, long] {
            let all = [HANDSHAKE, &frame].concat();
            assert!(written(&all).is_between_frames());
            assert!(!written(&all[..all.len() - 1]).is_between_frames());
            assert!(!written(&all[..=HANDSHAKE.len()]).is_between_frames());
        }
    }
}
