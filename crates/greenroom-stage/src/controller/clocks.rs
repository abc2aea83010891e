use std::collections::HashMap;
use std::time::Duration;

use crate::proc;
use crate::stage::scheduler::AtWork;
use crate::thread_state::cpu_time_of;

/// The CPU clocks of threads at their last look, used where `/proc` cannot be read.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    last: HashMap<i32, (u64, Duration)>,
}

impl Clocks {
    /// True if a thread's clock has stood since the last look at the same run of it: it is blocked,
    /// or was preempted all the time.
    pub(super) fn has_stood(&mut self, at_work: &AtWork) -> bool {
        let Some(time) = cpu_time_of(at_work.thread) else {
            // The thread has just ended. `is_blocked` gives `None` for that too: no reason to warn
            // of /proc.
            self.last.remove(&at_work.thread);
            return false;
        };
        proc::warn_unreadable();
        let now = (at_work.run, time);
        self.last.insert(at_work.thread, now) == Some(now)
    }

    /// Drops all readings, because the looks that follow are not comparable with them.
    pub(super) fn forget(&mut self) {
        self.last.clear();
    }
}
