use std::panic::Location;
use std::sync::Arc;

use greenroom_server::LoopWatch;
use greenroom_stage::{WatchedLoop, watch_this_loop};

/// Has the watchdog of `greenroom-stage` watch a loop of `greenroom-server`.
pub(crate) fn watch(name: &str) -> Arc<dyn LoopWatch> {
    Arc::new(OnWatch(watch_this_loop(name)))
}

struct OnWatch(WatchedLoop);

impl LoopWatch for OnWatch {
    fn parks(&self) {
        self.0.parks();
    }

    fn unparks(&self) {
        self.0.unparks();
    }

    fn connection_begins(&self) {
        self.0.connection_begins();
    }

    fn connection_ends(&self) {
        self.0.connection_ends();
    }

    fn task_begins(&self, spawned_at: &'static Location<'static>) {
        self.0.task_begins(spawned_at);
    }

    fn ends(&self) {
        self.0.ends();
    }

    fn stalls(&self) -> u64 {
        self.0.stalls()
    }
}
