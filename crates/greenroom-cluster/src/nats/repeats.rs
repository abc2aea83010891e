use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::time::Duration;

use async_nats::Subject;
use tokio::time::Instant;

/// The time for which a request is known at least, unless more come than [`KNOWN_MAX`].
const KNOWN_FOR: Duration = Duration::from_mins(2);
/// The requests that are known of one such time: 8 bytes each, and as much again for room.
const KNOWN_MAX: usize = 262_144;

/// The requests of a subscription that came of late, known by the subjects of their replies, which
/// differ.
///
/// A server sends a copy to each of the others at which it knows the subscription, and knows it for
/// a while where it has ended: a node that has moved on is still subscribed behind a link that
/// stands still. Should it come back there before the copy does, it gets the request again.
pub(super) struct Repeats {
    hasher: RandomState,
    /// Those of this time, and of the one before.
    known: [HashSet<u64, BuildHasherDefault<Hashed>>; 2],
    since: Instant,
}

/// The hash of a number that is a hash already.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, bytes: &[u8]) {
        unreachable!("{} bytes that are no u64", bytes.len());
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Repeats {
    pub(super) fn new() -> Self {
        Self {
            hasher: RandomState::new(),
            known: Default::default(),
            since: Instant::now(),
        }
    }

    /// Notes a request, and returns `true` if it has come before.
    pub(super) fn has(&mut self, reply: &Subject) -> bool {
        let now = Instant::now();
        let [current, before] = &mut self.known;
        if current.len() == KNOWN_MAX || now >= self.since + KNOWN_FOR {
            std::mem::swap(current, before);
            current.clear();
            self.since = now;
        }
        let request = self.hasher.hash_one(reply.as_str());
        before.contains(&request) || !current.insert(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(number: usize) -> Subject {
        format!("_INBOX.{number}").into()
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_is_known_for_two_minutes() {
        let mut repeats = Repeats::new();
        tokio::time::advance(KNOWN_FOR / 2).await;
        assert!(!repeats.has(&reply(1)));
        assert!(repeats.has(&reply(1)));
        tokio::time::advance(KNOWN_FOR).await;
        assert!(repeats.has(&reply(1)));
        assert!(!repeats.has(&reply(2)));
        tokio::time::advance(KNOWN_FOR).await;
        assert!(!repeats.has(&reply(3)));
        assert!(!repeats.has(&reply(1)), "it is forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn as_many_are_known_as_there_is_room_for() {
        let mut repeats = Repeats::new();
        assert!((0..=KNOWN_MAX).all(|number| !repeats.has(&reply(number))));
        assert!((0..=KNOWN_MAX).all(|number| repeats.has(&reply(number))));
        let sizes = repeats.known.each_ref().map(HashSet::len);
        assert!(sizes.into_iter().all(|size| size <= KNOWN_MAX), "{sizes:?}");
    }
}
