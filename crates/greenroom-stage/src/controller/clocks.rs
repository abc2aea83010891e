use std::collections::HashMap;
use std::time::Duration;

use crate::proc;
use crate::stage::hand_off::AtWork;
use crate::thread_state::cpu_time_of;

/// The CPU clocks of threads at their last look, where `/proc` does not tell what they do.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    last: HashMap<i32, (u64, Duration)>,
}

impl Clocks {
    /// Whether a thread's clock has stood since the last look at the same run of it: it is blocked, or
    /// was preempted all the time.
    pub(super) fn has_stood(&mut self, at_work: &AtWork) -> bool {
        let Some(time) = cpu_time_of(at_work.thread) else {
            // It has just ended, which /proc tells in the same way.
            self.last.remove(&at_work.thread);
            return false;
        };
        proc::warn_unreadable();
        let now = (at_work.run, time);
        self.last.insert(at_work.thread, now) == Some(now)
    }

    /// Looks from now on have nothing to do with those before.
    pub(super) fn forget(&mut self) {
        self.last.clear();
    }
}
