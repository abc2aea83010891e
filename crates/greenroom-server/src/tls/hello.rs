//! The first bytes of a new connection.

use super::session::RECORD_BYTES_MAX;

/// The content type of handshake messages (RFC 8446, 5.1).
const HANDSHAKE: u8 = 22;
/// Bytes of a record's type, version and length.
pub(super) const RECORD_HEAD_BYTES: usize = 5;
const MESSAGE_HEAD_BYTES: usize = 4;
/// The longest message that rustls takes.
const MESSAGE_BYTES_MAX: u32 = 0xffff;

/// The kinds of first bytes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hello {
    /// The beginning of a first message.
    Partial,
    /// A whole first message, or what rustls will say is none.
    Whole,
    /// A request of HTTP without TLS.
    PlainHttp,
}

impl Hello {
    /// Tells what `input`, all that has come so far, is. Only the length of the first message is
    /// looked at (RFC 8446, 4), which may come in several records; the rest is rustls' to judge.
    pub(super) fn of(input: &[u8]) -> Self {
        match input.first() {
            None => return Self::Partial,
            Some(&HANDSHAKE) => {}
            Some(first) if first.is_ascii_alphabetic() => return Self::PlainHttp,
            Some(_) => return Self::Whole,
        }
        let mut head = [0; MESSAGE_HEAD_BYTES];
        let mut come = 0;
        let mut records = input;
        while let Some((record, rest)) = records.split_at_checked(RECORD_HEAD_BYTES) {
            let length = usize::from(u16::from_be_bytes([record[3], record[4]]));
            if record[0] != HANDSHAKE || !(1..=RECORD_BYTES_MAX).contains(&length) {
                return Self::Whole;
            }
            let content = &rest[..length.min(rest.len())];
            let of_head = MESSAGE_HEAD_BYTES.saturating_sub(come).min(content.len());
            head[come.min(MESSAGE_HEAD_BYTES)..][..of_head].copy_from_slice(&content[..of_head]);
            come += content.len();
            let [_, lengths @ ..] = head;
            let message = u32::from_be_bytes([0, lengths[0], lengths[1], lengths[2]]);
            let has_come = come >= MESSAGE_HEAD_BYTES + message as usize;
            if has_come || message > MESSAGE_BYTES_MAX {
                return Self::Whole;
            }
            records = &rest[content.len()..];
        }
        Self::Partial
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(content.len()).expect("it is short");
        let head = [&[HANDSHAKE, 3, 1][..], &length.to_be_bytes()].concat();
        [&head[..], content].concat()
    }

    #[test]
    fn a_message_is_whole_with_its_last_byte() {
        let message = [&[1, 0, 1, 0][..], &[7; 256]].concat();
        let whole = record(&message);
        for length in 0..whole.len() {
            assert_eq!(Hello::of(&whole[..length]), Hello::Partial, "{length}");
        }
        assert_eq!(Hello::of(&whole), Hello::Whole);
    }

    #[test]
    fn a_message_may_come_in_many_records() {
        let message = [&[1, 0, 0, 40][..], &[7; 40]].concat();
        let records: Vec<u8> = message.chunks(3).flat_map(record).collect();
        assert_eq!(Hello::of(&records[..records.len() - 1]), Hello::Partial);
        assert_eq!(Hello::of(&records), Hello::Whole);
    }

    #[test]
    fn what_is_no_handshake_is_not_waited_for() {
        assert_eq!(Hello::of(b"GET / HTTP/1.1\r\n"), Hello::PlainHttp);
        assert_eq!(Hello::of(b"PRI * HTTP/2.0\r\n"), Hello::PlainHttp);
        assert_eq!(Hello::of(&[0x80, 0x2e, 1]), Hello::Whole);
        assert_eq!(Hello::of(&[HANDSHAKE, 3, 1, 0, 0]), Hello::Whole);
        assert_eq!(Hello::of(&[HANDSHAKE, 3, 1, 0xff, 0xff]), Hello::Whole);
        assert_eq!(Hello::of(&record(&[1, 1, 0, 0])), Hello::Whole);
        let alert_behind = [&record(&[1, 0, 0, 9, 1])[..], &[21, 3, 1, 0, 2]].concat();
        assert_eq!(Hello::of(&alert_behind), Hello::Whole);
    }
}
