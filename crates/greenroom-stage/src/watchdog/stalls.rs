use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::slot::{Sight, living, now_nanos};
use crate::placement::route::{Route, lock_routes};
use crate::{run_delay, thread_state};

/// A poll that holds up a loop for longer than this is a stall: its route is staged while it runs.
pub const STALL: Duration = Duration::from_millis(10);

/// A poll that holds up a loop for longer than this is an error.
pub const HANG: Duration = Duration::from_secs(1);

/// A route is warned of at most once in this time. All its stalls are counted.
pub const WARNING_PAUSE: Duration = Duration::from_secs(1);

/// What the watchdog remembers from one look to the next.
#[derive(Default)]
pub(super) struct Watch {
    threads: HashMap<i32, Seen>,
    warned: HashMap<usize, Instant>,
}

#[derive(Clone, Copy, Default)]
struct Seen {
    latest: u64,
    /// What was said of the poll that began then.
    said: Said,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Said {
    #[default]
    Nothing,
    Stall,
    Hang,
}

impl Watch {
    /// Looks at all threads; `true` if one polls, or has polled since the last look.
    pub(super) fn look(&mut self) -> bool {
        let slots = living();
        let mut is_active = false;
        let now = now_nanos();
        for slot in &slots {
            let sight = slot.sight();
            let thread = slot.thread();
            let seen = self.threads.entry(thread).or_default();
            let latest = slot.latest();
            is_active |= sight.is_some() || latest != seen.latest;
            if latest != seen.latest {
                let said = Said::Nothing;
                *seen = Seen { latest, said };
            }
            let Some(sight) = sight.filter(|sight| sight.since == latest) else {
                continue;
            };
            let says = judge(&sight, now);
            if says > seen.said {
                seen.said = says;
                self.say(&sight, says, now);
            }
        }
        if self.threads.len() > slots.len() {
            self.threads
                .retain(|thread, _| slots.iter().any(|slot| slot.thread() == *thread));
        }
        is_active
    }

    fn say(&mut self, sight: &Sight, says: Said, now: u64) {
        let Some(route) = lock_routes().get(sight.route).copied() else {
            return;
        };
        let millis = Duration::from_nanos(now.saturating_sub(sight.since)).as_millis();
        let millis = u64::try_from(millis).unwrap_or(u64::MAX);
        let (method, path, thread) = (route.method(), route.path(), sight.thread);
        if says == Said::Hang {
            let doing = thread_state::describe(thread);
            tracing::error!(
                method,
                path,
                thread,
                millis,
                doing,
                "a handler hangs on a loop"
            );
            return;
        }
        route.stall();
        if self.may_warn(route) {
            tracing::warn!(method, path, thread, millis, "a handler holds up a loop");
        }
    }

    fn may_warn(&mut self, route: &Route) -> bool {
        let now = Instant::now();
        let last = self.warned.get(&route.id());
        let may = last.is_none_or(|last| now.duration_since(*last) >= WARNING_PAUSE);
        if may {
            self.warned.insert(route.id(), now);
        }
        may
    }
}

/// What is to be said of a poll. Time in which its thread had no processor is not its own.
fn judge(sight: &Sight, now: u64) -> Said {
    let taken = Duration::from_nanos(now.saturating_sub(sight.since));
    if taken <= STALL {
        return Said::Nothing;
    }
    let delay = run_delay::of_thread(sight.thread).unwrap_or(0);
    let preempted = Duration::from_nanos(delay.saturating_sub(sight.run_delay));
    match taken.saturating_sub(preempted) {
        busy if busy > HANG => Said::Hang,
        busy if busy > STALL => Said::Stall,
        _ => Said::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::{Pid, gettid};

    #[test]
    fn a_poll_is_a_stall_and_then_a_hang() {
        let thread = Pid::as_raw(Some(gettid()));
        let now = now_nanos() + 10_000_000_000;
        let after = |taken: Duration| {
            let run_delay = run_delay::of_thread(thread).expect("Linux has it");
            let taken = u64::try_from(taken.as_nanos()).expect("short");
            let since = now - taken;
            judge(
                &Sight {
                    route: 0,
                    since,
                    run_delay,
                    thread,
                },
                now,
            )
        };
        assert!(after(Duration::from_millis(10)) == Said::Nothing);
        assert!(after(Duration::from_millis(900)) == Said::Stall);
        assert!(after(Duration::from_secs(5)) == Said::Hang);
    }

    #[test]
    fn a_thread_without_a_processor_is_not_to_blame() {
        let thread = Pid::as_raw(Some(gettid()));
        let now = now_nanos() + 10_000_000_000;
        let delayed = run_delay::of_thread(thread).expect("Linux has it");
        let sight = Sight {
            route: 0,
            since: now - delayed - 5_000_000,
            run_delay: 0,
            thread,
        };
        assert!(judge(&sight, now) == Said::Nothing);
    }
}
