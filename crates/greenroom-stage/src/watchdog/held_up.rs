use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use super::loops::{LoopSlot, Progress, watched};
use super::slot::now_nanos;
use super::stalls::{Said, WARNING_PAUSE, judge, millis_since};
use crate::placement::route;
use crate::{run_delay, thread_state};

/// The watchdog's record of each loop, by its thread, from one look to the next.
#[derive(Default)]
pub(super) struct HeldUp {
    loops: HashMap<i32, Seen>,
}

#[derive(Default)]
struct Seen {
    progress: Progress,
    /// The time at which it was first seen without progress, and the reading of its thread then.
    /// Not taken at every look, because a reading takes microseconds; so a stall of 10 ms is seen
    /// when it is 22 ms old at most.
    stands_since: Option<(u64, u64)>,
    said: Said,
    warned: Option<Instant>,
}

impl HeldUp {
    /// Looks at all loops; `true` if one is at work.
    pub(super) fn look(&mut self) -> bool {
        let loops = watched();
        let mut is_active = false;
        for slot in &loops {
            is_active |= !slot.is_parked();
            let seen = self.loops.entry(slot.thread()).or_default();
            seen.look_at(slot);
        }
        if self.loops.len() > loops.len() {
            self.loops
                .retain(|thread, _| loops.iter().any(|slot| slot.thread() == *thread));
        }
        is_active
    }
}

impl Seen {
    fn look_at(&mut self, slot: &Arc<LoopSlot>) {
        let progress = slot.progress();
        if progress != Some(self.progress) {
            self.progress = progress.unwrap_or_default();
            self.stands_since = None;
            self.said = Said::Nothing;
            return;
        }
        let now = now_nanos();
        let note = || run_delay::note_of_thread(slot.thread());
        let (since, note) = *self.stands_since.get_or_insert_with(|| (now, note()));
        let says = judge(slot.thread(), since, note, now);
        // A loop that has gone on meanwhile was not held up, however long the judgement took.
        if says > self.said && slot.progress() == Some(self.progress) {
            self.say(slot, says, millis_since(since, now));
        }
    }

    fn say(&mut self, slot: &LoopSlot, says: Said, millis: u64) {
        if self.said == Said::Nothing {
            slot.count_stall();
        }
        self.said = says;
        let (name, thread, task) = (slot.name(), slot.thread(), slot.task());
        let last_route = last_route(slot);
        if says == Said::Hang {
            let doing = thread_state::describe(thread);
            tracing::error!(
                name,
                thread,
                millis,
                task,
                last_route,
                doing,
                "a task hangs on a loop"
            );
        } else if self.may_warn() {
            tracing::warn!(
                name,
                thread,
                millis,
                task,
                last_route,
                "a task holds up a loop"
            );
        }
    }

    fn may_warn(&mut self) -> bool {
        let may = self
            .warned
            .is_none_or(|last| last.elapsed() >= WARNING_PAUSE);
        if may {
            self.warned = Some(Instant::now());
        }
        may
    }
}

fn last_route(slot: &LoopSlot) -> String {
    let route = slot.last_route().and_then(route::find);
    route.map_or_else(
        || "none".to_owned(),
        |route| format!("{} {}", route.method(), route.path()),
    )
}
