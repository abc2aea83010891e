//! Workers that hold too much memory: replaced, unless that cannot help.

use std::time::Duration;

use tokio::time::Instant;

use super::member::{Member, Reason};
use super::memory;
use super::shared::Shared;
use crate::pool::Seat;
use crate::status::WorkerState;

/// The rest before the first worker is replaced that was too large as soon as it was ready; each rest
/// is twice the one before.
const REST_MIN: Duration = Duration::from_secs(10);

/// The longest rest. A worker whose application leaks as well is replaced after it at last.
const REST_MAX: Duration = Duration::from_mins(10);

/// Whoever is beyond `max_rss`.
#[derive(Default)]
pub(super) struct Growth {
    fruitless: Option<Fruitless>,
}

/// A generation whose workers are too large from the start, so that another one is no smaller.
struct Fruitless {
    generation: u32,
    rest: Duration,
    next: Instant,
}

impl Growth {
    pub(super) fn look(&mut self, shared: &Shared, seats: &[Seat], now: Instant) {
        let Some(most) = shared.settings.max_rss else {
            return;
        };
        for member in shared.members() {
            if member.state() != WorkerState::Ready {
                continue;
            }
            let Some(bytes) = memory::resident_bytes(member.pid).filter(|bytes| *bytes > most)
            else {
                continue;
            };
            if self.may_replace(&member, seats, (bytes, most), now) {
                shared.retire(&member, Reason::Memory(bytes));
            }
        }
    }

    fn may_replace(
        &mut self,
        member: &Member,
        seats: &[Seat],
        (bytes, most): (u64, u64),
        now: Instant,
    ) -> bool {
        let seat = seats.iter().find(|seat| seat.key == member.key);
        let has_served = seat.is_some_and(|seat| seat.served > 0);
        let baseline = match member.baseline() {
            baseline if baseline > most => baseline,
            // It has grown without having done anything.
            _ if !has_served => bytes,
            _ => return true,
        };
        let (is_news, may_replace) = self.rest(member.generation, now);
        if is_news {
            tracing::warn!(
                target: "psgi",
                max_rss = most,
                baseline,
                "max_rss (--max-rss) is {most} bytes, and {member} held {baseline} before its first request: \
                 another one would be no smaller, so workers are replaced after rests of 10 s to 10 min \
                 only; set it well above {baseline}",
            );
        }
        may_replace
    }

    /// Whether this is the first time that a worker of this generation is too large from the start, and
    /// whether one may be replaced all the same.
    fn rest(&mut self, generation: u32, now: Instant) -> (bool, bool) {
        match &mut self.fruitless {
            Some(fruitless) if fruitless.generation == generation => {
                let is_due = now >= fruitless.next;
                if is_due {
                    fruitless.rest = (fruitless.rest * 2).min(REST_MAX);
                    fruitless.next = now + fruitless.rest;
                }
                (false, is_due)
            }
            fruitless => {
                *fruitless = Some(Fruitless {
                    generation,
                    rest: REST_MIN,
                    next: now + REST_MIN,
                });
                (true, false)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_that_is_too_large_is_told_of_once_and_replaced_ever_more_rarely() {
        let (mut growth, begin) = (Growth::default(), Instant::now());
        let second = |second| begin + Duration::from_secs(second);
        let mut replaced = Vec::new();
        for at in 0..2_000 {
            let (is_news, may_replace) = growth.rest(1, second(at));
            assert_eq!(is_news, at == 0);
            replaced.extend(may_replace.then_some(at));
        }
        assert_eq!(replaced, [10, 30, 70, 150, 310, 630, 1_230, 1_830]);
        assert_eq!(growth.rest(2, second(2_000)), (true, false));
        assert_eq!(growth.rest(2, second(2_010)), (false, true));
    }
}
