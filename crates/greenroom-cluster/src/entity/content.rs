//! The content of a record: the state, and the ids of the durable messages that made it.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::time::Instant;

/// The ids that are kept however old they are.
const KEPT: usize = 128;
/// The time for which an id is kept at least. A message comes again later than that only if the
/// servers do not deliver meanwhile: its handling is waited for 2 min at most, it is put off for
/// 1 min at most, and is missed after 30 s.
const KEPT_FOR: Duration = Duration::from_mins(4);
/// The format of the content; another one is refused.
const FORMAT: u8 = 1;

/// The ids of the durable messages that an entity has applied last, the oldest first.
///
/// Ages are those within this activation: an id that was loaded counts as new, so that clocks of
/// machines do not matter.
#[derive(Debug, Default)]
pub(super) struct Applied(VecDeque<(Box<str>, Instant)>);

impl Applied {
    pub(super) fn contains(&self, id: &str) -> bool {
        // The newest is the likeliest to come again.
        self.0.iter().rev().any(|(applied, _)| **applied == *id)
    }

    /// Returns the time after which one more fits, zero for now. Ids are not forgotten too early:
    /// rather than that the entity takes no more.
    pub(super) fn wait(&self, ids_max: usize, now: Instant) -> Duration {
        match self.0.front() {
            Some((_, since)) if self.0.len() >= ids_max => {
                KEPT_FOR.saturating_sub(now.saturating_duration_since(*since))
            }
            _ => Duration::ZERO,
        }
    }

    pub(super) fn push(&mut self, id: Box<str>, now: Instant) {
        let is_old = |since: &Instant| now.saturating_duration_since(*since) >= KEPT_FOR;
        while self.0.len() >= KEPT && self.0.front().is_some_and(|(_, since)| is_old(since)) {
            self.0.pop_front();
        }
        self.0.push_back((id, now));
    }
}

/// Encodes the ids, one more, and the state.
pub(super) fn encode(applied: &Applied, one_more: Option<&str>, state: &[u8]) -> Bytes {
    let ids = applied.0.iter().map(|(id, _)| &**id).chain(one_more);
    let count = applied.0.len() + usize::from(one_more.is_some());
    let mut content = BytesMut::with_capacity(state.len() + 32 * count + 5);
    content.put_u8(FORMAT);
    content.put_u32(u32::try_from(count).unwrap_or(u32::MAX));
    for id in ids {
        content.put_u32(u32::try_from(id.len()).unwrap_or(u32::MAX));
        content.put_slice(id.as_bytes());
    }
    content.put_slice(state);
    content.freeze()
}

/// Decodes ids and state; `None` if it is no content, or one of a format that is not known here.
pub(super) fn decode(mut content: Bytes, now: Instant) -> Option<(Applied, Bytes)> {
    if content.try_get_u8().ok()? != FORMAT {
        return None;
    }
    let count = content.try_get_u32().ok()?;
    let mut applied = Applied::default();
    for _ in 0..count {
        let length = usize::try_from(content.try_get_u32().ok()?).ok()?;
        if content.len() < length {
            return None;
        }
        let id = content.split_to(length);
        let id = std::str::from_utf8(&id).ok()?;
        applied.0.push_back((id.into(), now));
    }
    Some((applied, content))
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS_MAX: usize = 200;

    fn applied(ids: std::ops::Range<usize>, now: Instant) -> Applied {
        let mut applied = Applied::default();
        for id in ids {
            applied.push(id.to_string().into(), now);
        }
        applied
    }

    #[test]
    fn what_was_encoded_is_decoded() {
        let now = Instant::now();
        let content = encode(&applied(0..3, now), Some("é"), b"state");
        let (decoded, state) = decode(content, now).expect("it is a content");
        assert_eq!(&*state, b"state");
        assert!(["0", "1", "2", "é"].iter().all(|id| decoded.contains(id)));
        assert!(!decoded.contains("3"));
    }

    #[test]
    fn what_is_no_content_is_refused() {
        let now = Instant::now();
        let content = encode(&applied(0..3, now), None, b"");
        for length in 0..content.len() {
            assert!(decode(content.slice(..length), now).is_none(), "{length}");
        }
        let mut other = content.to_vec();
        other[0] = FORMAT + 1;
        assert!(decode(other.into(), now).is_none());
    }

    #[test]
    fn ids_are_forgotten_when_they_are_old_and_others_have_come() {
        let now = Instant::now();
        let mut applied = applied(0..150, now);
        let later = now + KEPT_FOR;
        applied.push("150".into(), later);
        assert!(!applied.contains("22"));
        assert!((23..=150).all(|id| applied.contains(&id.to_string())));
    }

    #[test]
    fn no_id_is_forgotten_early() {
        let now = Instant::now();
        let applied = applied(0..IDS_MAX, now);
        assert!((0..IDS_MAX).all(|id| applied.contains(&id.to_string())));
        let second = Duration::from_secs(1);
        assert_eq!(applied.wait(IDS_MAX, now + second), KEPT_FOR - second);
        assert_eq!(applied.wait(IDS_MAX, now + KEPT_FOR), Duration::ZERO);
        assert_eq!(applied.wait(IDS_MAX + 1, now), Duration::ZERO);
    }
}
