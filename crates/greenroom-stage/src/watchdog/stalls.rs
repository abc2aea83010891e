use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::slot::{Sight, living, now_nanos};
use crate::placement::route::{self, Route};
use crate::{run_delay, thread_state};

/// The time beyond which a poll that holds up a loop is a stall: its route is staged while it runs.
pub const STALL: Duration = Duration::from_millis(10);

/// The time beyond which a poll that holds up a loop is an error.
pub const HANG: Duration = Duration::from_secs(1);

/// The time in which a route is warned of at most once. All its stalls are counted.
pub const WARNING_PAUSE: Duration = Duration::from_secs(1);

/// The watchdog's record of each thread, from one look to the next.
#[derive(Default)]
pub(super) struct Watch {
    threads: HashMap<i32, Seen>,
    warned: HashMap<usize, Instant>,
}

#[derive(Clone, Copy, Default)]
struct Seen {
    latest: u64,
    /// The message that was logged of the poll that began at `latest`.
    said: Said,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Said {
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
            let says = judge(sight.thread, sight.since, sight.run_delay, now);
            if says > seen.said {
                let said = std::mem::replace(&mut seen.said, says);
                self.say(&sight, (said, says), now);
            }
        }
        if self.threads.len() > slots.len() {
            self.threads
                .retain(|thread, _| slots.iter().any(|slot| slot.thread() == *thread));
        }
        is_active
    }

    /// Says what is new of a poll, of which `said` was said before.
    fn say(&mut self, sight: &Sight, (said, says): (Said, Said), now: u64) {
        let Some(route) = route::find(sight.route) else {
            return;
        };
        // Also of one that is a hang when it is first seen, because nothing ran meanwhile.
        if said == Said::Nothing {
            route.stall();
        }
        let millis = millis_since(sight.since, now);
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
        if self.may_warn(&route) {
            tracing::warn!(method, path, thread, millis, "a handler holds up a loop");
        }
    }

    fn may_warn(&mut self, route: &Route) -> bool {
        let now = Instant::now();
        let last = self.warned.get(&route.id());
        let may = last.is_none_or(|last| now.duration_since(*last) >= WARNING_PAUSE);
        if may {
            // Of routes that are gone too.
            self.warned
                .retain(|_, last| now.duration_since(*last) < WARNING_PAUSE);
            self.warned.insert(route.id(), now);
        }
        may
    }
}

pub(super) fn millis_since(since: u64, now: u64) -> u64 {
    let millis = Duration::from_nanos(now.saturating_sub(since)).as_millis();
    u64::try_from(millis).unwrap_or(u64::MAX)
}

/// Decides which message is due for what a thread does since `since`, with the reading `note` of
/// that time. Time in which it had no processor is not its own.
pub(super) fn judge(thread: i32, since: u64, note: u64, now: u64) -> Said {
    let taken = Duration::from_nanos(now.saturating_sub(since));
    if taken <= STALL {
        return Said::Nothing;
    }
    match run_delay::busy_of_thread(thread, note, taken) {
        busy if busy > HANG => Said::Hang,
        busy if busy > STALL => Said::Stall,
        _ => Said::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::super::slot::with_own;
    use super::*;
    use crate::placement::route::Routes;
    use crate::placement::{Rule, STREAK_FIRST};
    use crate::stage::Stage;
    use http::Method;
    use rustix::thread::{Pid, gettid};

    #[test]
    fn a_poll_is_a_stall_and_then_a_hang() {
        let thread = Pid::as_raw(Some(gettid()));
        let now = now_nanos() + 10_000_000_000;
        let after = |taken: Duration| {
            let note = run_delay::note_of_thread(thread);
            let taken = u64::try_from(taken.as_nanos()).expect("short");
            judge(thread, now - taken, note, now)
        };
        assert!(after(Duration::from_millis(10)) == Said::Nothing);
        assert!(after(Duration::from_millis(900)) == Said::Stall);
        assert!(after(Duration::from_secs(5)) == Said::Hang);
    }

    /// The watchdog, or all of the process, had no processor for so long.
    #[test]
    fn a_route_that_hangs_when_it_is_first_seen_is_staged_too() {
        let stage = Stage::builder("hangs").threads(1..=1).build();
        let routes = Routes::new(stage.ok(), false, Rule::default());
        let route = routes.at(routes.find(&Method::GET, "/hangs"));
        for _ in 0..STREAK_FIRST {
            route.record_staged(Duration::from_micros(5));
        }
        assert!(route.is_inline());
        with_own(|own| {
            let own = own.expect("the thread goes on");
            let outer = own.begin(route, now_nanos() - 5_000_000_000);
            Watch::default().look();
            own.end(&outer);
        });
        assert!(!route.is_inline());
        assert!(route.status().stalls >= 1);
    }

    /// As behind `Placement::on`, whose routes may have others inside.
    #[tokio::test]
    async fn what_is_polled_on_a_stage_holds_up_no_loop() {
        let stage = Stage::builder("unwatched").threads(1..=1).build();
        let stage = stage.expect("there is a thread");
        let is_watched = stage.run(|| with_own(|own| own.is_some())).await;
        assert_eq!(is_watched, Ok(false));
    }

    #[test]
    fn a_thread_without_a_processor_is_not_to_blame() {
        let thread = Pid::as_raw(Some(gettid()));
        let now = now_nanos() + 10_000_000_000;
        let delayed = run_delay::note_of_thread(thread);
        assert!(judge(thread, now - delayed - 5_000_000, 0, now) == Said::Nothing);
    }
}
