//! Replaces workers that hold too much memory, unless that cannot help.

use std::time::Duration;

use tokio::time::Instant;

use super::member::{Member, Reason};
use super::memory;
use super::shared::Shared;
use crate::pool::WorkerLoad;
use crate::status::WorkerState;

/// The rest before the first replacement of a worker that was too large as soon as it was ready;
/// each rest is twice the one before.
const REST_MIN: Duration = Duration::from_secs(10);

/// The longest rest. A worker whose application leaks as well is replaced after it at last.
const REST_MAX: Duration = Duration::from_mins(10);

/// The time that a worker which has grown too large must have been ready before it is replaced. The
/// first of a generation is replaced at once: it may have been one large request.
const AGE_MIN: Duration = Duration::from_mins(1);

/// The generations with workers above `max_rss`.
#[derive(Default)]
pub(super) struct Growth {
    fruitless: Option<Fruitless>,
    early: Option<Early>,
}

/// A generation of which a worker has grown too large before it was [`AGE_MIN`] old.
struct Early {
    generation: u32,
    is_logged: bool,
}

/// A generation whose workers are too large from the start, so that another one is no smaller.
struct Fruitless {
    generation: u32,
    rest: Duration,
    next: Instant,
}

impl Growth {
    pub(super) fn look(&mut self, shared: &Shared, loads: &[WorkerLoad], now: Instant) {
        let most = shared.settings.limits.max_rss;
        if most == u64::MAX {
            return;
        }
        for member in shared.members() {
            if member.state() != WorkerState::Ready {
                continue;
            }
            let Some(bytes) = memory::resident_bytes(member.pid).filter(|bytes| *bytes > most)
            else {
                continue;
            };
            if self.may_replace(shared, &member, (bytes, most), loads, now) {
                shared.retire(&member, Reason::Memory(bytes));
            }
        }
    }

    fn may_replace(
        &mut self,
        shared: &Shared,
        member: &Member,
        (bytes, most): (u64, u64),
        loads: &[WorkerLoad],
        now: Instant,
    ) -> bool {
        let application = shared.settings.name();
        let load = loads.iter().find(|load| load.key == member.key);
        let served = load.map_or(0, |load| load.served);
        let baseline = match member.baseline() {
            baseline if baseline > most => baseline,
            // It has grown without a single request.
            _ if served == 0 => bytes,
            baseline => {
                let (is_news, may_replace) = self.hold(member.generation, member.health());
                if is_news {
                    tracing::warn!(
                        target: "psgi",
                        application,
                        max_rss = most,
                        baseline,
                        "max_rss (--max-rss) is {most} bytes, and {member}, which held {baseline} \
                         before its first request, has grown to {bytes} with {served} requests, as \
                         one before it did: each worker is replaced after 1 min at the earliest; \
                         set it well above {bytes}",
                    );
                }
                return may_replace;
            }
        };
        let (is_news, may_replace) = self.rest(member.generation, now);
        if is_news {
            tracing::warn!(
                target: "psgi",
                application,
                max_rss = most,
                baseline,
                "max_rss (--max-rss) is {most} bytes, and {member} held {baseline} before its \
                 first request: another one would be no smaller, so workers are replaced after \
                 rests of 10 s to 10 min only; set it well above {baseline}",
            );
        }
        may_replace
    }

    /// Returns two flags for a generation of which a worker of that age has grown too large: the
    /// first is true if a warning is due, the second if the worker may be replaced.
    fn hold(&mut self, generation: u32, age: Duration) -> (bool, bool) {
        if age >= AGE_MIN {
            return (false, true);
        }
        match &mut self.early {
            Some(early) if early.generation == generation => {
                (!std::mem::replace(&mut early.is_logged, true), false)
            }
            early => {
                *early = Some(Early {
                    generation,
                    is_logged: false,
                });
                (false, true)
            }
        }
    }

    /// Returns two flags for a generation of which a worker is too large from the start: the first
    /// is true if a warning is due, the second if one worker may be replaced all the same.
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
    fn those_that_grow_too_large_soon_are_told_of_once_and_replaced_once_a_minute() {
        let (mut growth, second) = (Growth::default(), Duration::from_secs);
        assert_eq!(growth.hold(1, second(2)), (false, true), "the first");
        let second_one: Vec<_> = (1..=60).map(|age| growth.hold(1, second(age))).collect();
        assert_eq!(second_one[0], (true, false));
        assert!(second_one[1..59].iter().all(|held| *held == (false, false)));
        assert_eq!(second_one[59], (false, true));
        assert_eq!(growth.hold(1, second(3)), (false, false), "the third");
        assert_eq!(growth.hold(2, second(3)), (false, true), "after a reload");
    }

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
