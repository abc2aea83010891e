use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::Failure;

/// The period over which failures are counted together.
const PERIOD: Duration = Duration::from_mins(1);

/// Counts of failed log-ins, by name.
///
/// Successful ones are not counted, so a user who knows the password uses up nothing.
#[derive(Debug)]
pub(super) struct FailedLogIns {
    /// The failures allowed in a minute; 0 is no limit.
    most: u32,
    counts: Mutex<Counts>,
}

#[derive(Debug)]
struct Counts {
    forgot_at: Instant,
    /// Keyed by a hash of the name, which has the same size for any text.
    of: HashMap<[u8; 32], Count>,
}

#[derive(Debug)]
struct Count {
    since: Instant,
    failures: u32,
}

impl FailedLogIns {
    pub(super) fn new(most: u32) -> Self {
        let counts = Counts {
            forgot_at: Instant::now(),
            of: HashMap::new(),
        };
        Self {
            most,
            counts: Mutex::new(counts),
        }
    }

    /// Rejects a try to log in with this name if too many have failed.
    ///
    /// # Errors
    /// [`Failure::TooMany`] until the name's current minute is over.
    pub(super) fn check(&self, name: &str, now: Instant) -> Result<(), Failure> {
        let counts = self.counts.lock();
        let Some(count) = counts.of.get(&hash(name)) else {
            return Ok(());
        };
        let retry_after = (count.since + PERIOD).saturating_duration_since(now);
        if count.failures < self.most || retry_after.is_zero() {
            return Ok(());
        }
        Err(Failure::TooMany { retry_after })
    }

    pub(super) fn count(&self, name: &str, now: Instant) {
        if self.most == 0 {
            return;
        }
        let is_old = |since: Instant| now.saturating_duration_since(since) >= PERIOD;
        let mut counts = self.counts.lock();
        if is_old(counts.forgot_at) {
            counts.of.retain(|_, count| !is_old(count.since));
            counts.forgot_at = now;
        }
        let new = || Count {
            since: now,
            failures: 0,
        };
        let count = counts.of.entry(hash(name)).or_insert_with(new);
        if is_old(count.since) {
            *count = new();
        }
        count.failures = count.failures.saturating_add(1);
    }
}

fn hash(name: &str) -> [u8; 32] {
    Sha256::digest(name).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_too_many_failures_waits_for_the_end_of_the_minute() {
        let failed = FailedLogIns::new(2);
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        failed.count("ada", start);
        assert!(failed.check("ada", start).is_ok());
        failed.count("ada", later(20));
        match failed.check("ada", later(20)) {
            Err(Failure::TooMany { retry_after }) => {
                assert_eq!(retry_after, Duration::from_secs(40));
            }
            other => panic!("two are too many: {other:?}"),
        }
        assert!(failed.check("grace", later(20)).is_ok());
        assert!(failed.check("ada", later(60)).is_ok());
        failed.count("ada", later(60));
        assert!(failed.check("ada", later(60)).is_ok());
    }

    #[test]
    fn nought_is_no_limit() {
        let failed = FailedLogIns::new(0);
        let now = Instant::now();
        for _ in 0..1_000 {
            failed.count("ada", now);
        }
        assert!(failed.check("ada", now).is_ok());
    }
}
