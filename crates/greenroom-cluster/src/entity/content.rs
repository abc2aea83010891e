//! The content of a record: the state, and the ids of the durable messages that made it.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::time::Instant;

/// The ids that are kept however old they are.
const KEPT: usize = 128;
/// The bytes that ids may take of a record, besides its state. Of the longest ids 1,300 fit.
pub(super) const IDS_BYTES_MAX: usize = 256 * 1_024;
/// The format of the content; another one is refused.
const FORMAT: u8 = 1;

/// The ids of the durable messages that an entity has applied last, the oldest first.
///
/// Ages are those within this activation: an id that was loaded counts as new, so that clocks of
/// machines do not matter.
#[derive(Debug, Default)]
pub(super) struct Applied {
    ids: VecDeque<(Box<str>, Instant)>,
    bytes: usize,
}

impl Applied {
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(super) fn contains(&self, id: &str) -> bool {
        // The newest is the likeliest to come again.
        self.ids.iter().rev().any(|(applied, _)| **applied == *id)
    }

    /// Returns the time after which one more fits, zero for now. No id is forgotten before it was
    /// kept for its time: rather than that the entity takes no more.
    pub(super) fn wait(&self, ids_max: usize, kept_for: Duration, now: Instant) -> Duration {
        match self.ids.front() {
            Some((_, since)) if self.ids.len() >= ids_max || self.bytes >= IDS_BYTES_MAX => {
                kept_for.saturating_sub(now.saturating_duration_since(*since))
            }
            _ => Duration::ZERO,
        }
    }

    /// Returns the moment when all ids are old but for those that are always kept; `None` if there
    /// are no others.
    pub(super) fn old_at(&self, kept_for: Duration) -> Option<Instant> {
        let last_of_others = self.ids.len().checked_sub(KEPT + 1)?;
        Some(self.ids[last_of_others].1 + kept_for)
    }

    /// Forgets ids that are old, but for those that are always kept, of which so many are to come.
    pub(super) fn forget_old(&mut self, to_come: usize, kept_for: Duration, now: Instant) {
        while self.ids.len() + to_come > KEPT
            && let Some((id, since)) = self.ids.front()
            && now.saturating_duration_since(*since) >= kept_for
        {
            self.bytes -= encoded_len(id);
            self.ids.pop_front();
        }
    }

    pub(super) fn push(&mut self, id: Box<str>, now: Instant) {
        self.bytes += encoded_len(&id);
        self.ids.push_back((id, now));
    }
}

fn encoded_len(id: &str) -> usize {
    size_of::<u32>() + id.len()
}

/// Encodes the ids, one more, and the state.
pub(super) fn encode(applied: &Applied, one_more: Option<&str>, state: &[u8]) -> Bytes {
    let ids = applied.ids.iter().map(|(id, _)| &**id).chain(one_more);
    let count = applied.len() + usize::from(one_more.is_some());
    let bytes = applied.bytes + one_more.map_or(0, encoded_len);
    let mut content = BytesMut::with_capacity(state.len() + bytes + 5);
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
        applied.push(id.into(), now);
    }
    Some((applied, content))
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS_MAX: usize = 200;
    const KEPT_FOR: Duration = Duration::from_mins(4);

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
        assert_eq!(applied.old_at(KEPT_FOR), Some(later));
        applied.forget_old(1, KEPT_FOR, later);
        applied.push("150".into(), later);
        assert!(!applied.contains("22"));
        assert!((23..=150).all(|id| applied.contains(&id.to_string())));
        assert_eq!(applied.old_at(KEPT_FOR), None);
        assert_eq!(encode(&applied, None, b"").len(), 5 + applied.bytes);
    }

    #[test]
    fn long_ids_take_no_more_than_their_share() {
        let (mut applied, now) = (Applied::default(), Instant::now());
        while applied.wait(usize::MAX, KEPT_FOR, now).is_zero() {
            applied.push("x".repeat(200).into(), now);
        }
        assert!(applied.bytes < IDS_BYTES_MAX + 204);
        assert_eq!(applied.wait(usize::MAX, KEPT_FOR, now), KEPT_FOR);
        let later = now + KEPT_FOR;
        applied.forget_old(0, KEPT_FOR, later);
        assert_eq!((applied.len(), applied.bytes), (KEPT, KEPT * 204));
        assert!(applied.wait(usize::MAX, KEPT_FOR, later).is_zero());
    }

    #[test]
    fn no_id_is_forgotten_early() {
        let now = Instant::now();
        let mut applied = applied(0..IDS_MAX, now);
        let early = now + KEPT_FOR - Duration::from_secs(1);
        applied.forget_old(1, KEPT_FOR, early);
        assert!((0..IDS_MAX).all(|id| applied.contains(&id.to_string())));
        let later = now + Duration::from_mins(1);
        assert_eq!(
            applied.wait(IDS_MAX, KEPT_FOR, later),
            Duration::from_mins(3)
        );
        assert_eq!(
            applied.wait(IDS_MAX, KEPT_FOR, now + KEPT_FOR),
            Duration::ZERO
        );
        assert_eq!(applied.wait(IDS_MAX + 1, KEPT_FOR, now), Duration::ZERO);
    }
}
