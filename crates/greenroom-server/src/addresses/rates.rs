use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::owner::{Owner, TooMany};

/// Owners that are known at a time, at most: 2 MiB.
const OWNERS_MAX: usize = 65_536;
/// Owners of one set: an owner is looked for in the set that its hash names, and nowhere else.
const SET: usize = 16;
/// Sets that share a lock.
const SETS_PER_LOCK: usize = 64;

/// A bucket of tokens for each owner, in a table of fixed size.
///
/// A bucket is kept as the moment at which it will be full again (the generic cell rate algorithm,
/// as of ATM and of nginx), so one that is full needs no entry. Where a set has no room, the bucket
/// that will be full first is forgotten: many owners at once can make the limit laxer for some, and
/// never stricter for anybody. The hash is keyed by chance, so nobody can choose whom to push out.
#[derive(Debug)]
pub(super) struct Rates {
    /// The cost of one request.
    interval: Duration,
    /// The capacity of a bucket.
    burst: Duration,
    began: Instant,
    hashes: RandomState,
    locks: Box<[Mutex<Box<[Bucket]>>]>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    owner: Owner,
    /// Since `began`.
    full_at: Duration,
}

const FULL: Bucket = Bucket {
    owner: Owner(0),
    full_at: Duration::ZERO,
};

impl Rates {
    /// None if there is no limit.
    pub(super) fn new(rate_max: u32, burst: u32) -> Option<Self> {
        let interval = Duration::from_secs(1).checked_div(rate_max)?;
        let locks = OWNERS_MAX / (SET * SETS_PER_LOCK);
        let buckets = || Mutex::new(vec![FULL; SET * SETS_PER_LOCK].into_boxed_slice());
        Some(Self {
            interval,
            burst: interval.saturating_mul(burst.max(1)),
            began: Instant::now(),
            hashes: RandomState::new(),
            locks: (0..locks).map(|_| buckets()).collect(),
        })
    }

    pub(super) fn take(&self, owner: Owner) -> Result<(), TooMany> {
        self.take_at(owner, self.began.elapsed())
    }

    fn take_at(&self, owner: Owner, now: Duration) -> Result<(), TooMany> {
        let hash = usize::try_from(self.hashes.hash_one(owner) >> 32).unwrap_or_default();
        let (lock, set) = (
            hash % self.locks.len(),
            hash / self.locks.len() % SETS_PER_LOCK,
        );
        let mut buckets = self.locks[lock].lock();
        let set = &mut buckets[set * SET..][..SET];
        let known = set.iter().position(|bucket| bucket.owner == owner);
        let index = known.unwrap_or_else(|| first_full(set));
        let full_at = known.map_or(now, |index| set[index].full_at.max(now));
        let full_at = full_at + self.interval;
        let late = full_at.saturating_sub(now).saturating_sub(self.burst);
        if !late.is_zero() {
            let retry_after = late.as_secs() + u64::from(late.subsec_nanos() > 0);
            return Err(TooMany { retry_after });
        }
        set[index] = Bucket { owner, full_at };
        Ok(())
    }
}

/// Of a set without the owner: where to put it.
fn first_full(set: &[Bucket]) -> usize {
    let first = set.iter().enumerate();
    let first = first.min_by_key(|(_, bucket)| bucket.full_at);
    first.map_or(0, |(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: Owner = Owner(7);

    fn rates(rate_max: u32, burst: u32) -> Rates {
        Rates::new(rate_max, burst).expect("a limit")
    }

    fn milliseconds(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_burst_is_served_and_then_so_many_a_second() {
        let rates = rates(10, 5);
        let at = milliseconds(3_000);
        assert!((0..5).all(|_| rates.take_at(OWNER, at).is_ok()));
        assert_eq!(rates.take_at(OWNER, at), Err(TooMany { retry_after: 1 }));
        assert!(rates.take_at(OWNER, at + milliseconds(99)).is_err());
        assert!(rates.take_at(OWNER, at + milliseconds(100)).is_ok());
        assert!(rates.take_at(OWNER, at + milliseconds(100)).is_err());
        let later = at + milliseconds(60_000);
        assert!((0..5).all(|_| rates.take_at(OWNER, later).is_ok()));
        assert!(rates.take_at(OWNER, later).is_err());
    }

    #[test]
    fn a_rejection_says_when_there_is_room_again() {
        let rates = rates(1, 1);
        assert!(rates.take_at(OWNER, milliseconds(0)).is_ok());
        let refused = rates.take_at(OWNER, milliseconds(1));
        assert_eq!(refused, Err(TooMany { retry_after: 1 }));
        assert!(rates.take_at(OWNER, milliseconds(1_000)).is_ok());
    }

    #[test]
    fn a_million_owners_take_no_more_room_and_are_all_served() {
        let rates = rates(1, 1);
        let at = milliseconds(5_000);
        assert!((1..1_000_000).all(|owner| rates.take_at(Owner(owner), at).is_ok()));
        let buckets: usize = rates.locks.iter().map(|set| set.lock().len()).sum();
        assert_eq!(buckets, OWNERS_MAX);
    }

    #[test]
    fn nobody_is_limited_by_none() {
        assert!(Rates::new(0, 5).is_none());
    }
}
