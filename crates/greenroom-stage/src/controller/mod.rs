//! The controller: one thread for all stages of the process, which keeps as many threads computing
//! as may compute.
//!
//! It sleeps while nothing waits. A stage whose queue is not empty is looked at every [`TICK`]: a
//! sample of its threads ([`thread_sample`]) decides how many more are to start ([`decide`]).

mod clocks;
mod decide;
mod thread_sample;

use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::stage::lanes::LENGTHS;
use crate::stage::shared::Shared;
use clocks::Clocks;
use decide::threads_to_start;

/// The time between two looks at a stage in which something waits.
const TICK: Duration = Duration::from_millis(4);

/// Every fifth look, after 20 ms, is for overdue work as well, and for begun work whose client has
/// left: for that all that waits is looked at, under the lock that the stage's threads and all
/// loops need.
const OVERDUE_EVERY: u32 = 5;

/// Stages that have work and no thread on its way to take it.
#[derive(Default)]
struct Inbox {
    stages: Mutex<Vec<Arc<Shared>>>,
    changed: Condvar,
}

/// A stage that is looked after.
struct Attended {
    stage: Arc<Shared>,
    looks: u32,
}

/// Notifies the controller that a stage has work and no thread on its way to take it.
pub(crate) fn notify(stage: &Arc<Shared>) {
    static INBOX: LazyLock<&'static Inbox> = LazyLock::new(|| {
        let inbox: &'static Inbox = Box::leak(Box::default());
        let started = thread::Builder::new()
            .name("stage-control".into())
            .spawn(move || inbox.attend());
        if let Err(error) = started {
            tracing::error!(
                %error,
                "no thread for the controller: stages keep their first threads"
            );
        }
        inbox
    });
    let mut stages = INBOX.stages.lock();
    stages.push(Arc::clone(stage));
    drop(stages);
    INBOX.changed.notify_one();
}

impl Inbox {
    fn attend(&self) {
        let (mut attended, mut clocks) = (Vec::<Attended>::new(), Clocks::default());
        loop {
            let more = self.receive(attended.is_empty()).into_iter();
            attended.extend(more.map(|stage| Attended { stage, looks: 0 }));
            attended.retain_mut(|attended| attended.look_after(&mut clocks));
            if attended.is_empty() {
                clocks.forget();
            } else {
                thread::sleep(TICK);
            }
        }
    }

    fn receive(&self, may_wait: bool) -> Vec<Arc<Shared>> {
        let mut stages = self.stages.lock();
        while may_wait && stages.is_empty() {
            self.changed.wait(&mut stages);
        }
        std::mem::take(&mut stages)
    }
}

impl Attended {
    /// Drops overdue work, brings forward what is to be dropped by a thread, and starts the threads
    /// that the stage needs. `false` if nothing waits any more.
    fn look_after(&mut self, clocks: &mut Clocks) -> bool {
        if self.looks.is_multiple_of(OVERDUE_EVERY) {
            self.stage.bring_forward_left();
            self.stage.drop_overdue();
        }
        self.looks = self.looks.wrapping_add(1);
        start_needed(&self.stage, clocks)
    }
}

/// Starts the threads that a stage needs; `false` if nothing waits.
fn start_needed(stage: &Arc<Shared>, clocks: &mut Clocks) -> bool {
    let (counts, mut at_work) = stage.scheduler.inspect();
    if counts.waiting == 0 {
        return false;
    }
    let bounds = stage.settings.bounds;
    if counts.started >= bounds.threads_max || counts.waiting_of.iter().all(|of| *of == 0) {
        // No thread to add, but waiting work may become overdue: look again.
        return true;
    }
    let start = LENGTHS.map(|length| {
        let of_length = at_work.iter_mut().filter(|worker| worker.length == length);
        let mut of_length: Vec<_> = of_length.collect();
        let found = thread_sample::take(&mut of_length, bounds.compute_max, clocks);
        let start = threads_to_start(&decide::StageSample {
            working: of_length.len(),
            computing: found.computing,
            waiting: counts.waiting_of[length as usize],
            compute_max: bounds.compute_max,
            threads_max: bounds.threads_max - (counts.working - of_length.len()),
        });
        start.min(found.start_max())
    });
    let announced = stage.scheduler.apply(&at_work, start, Instant::now());
    start_threads(stage, announced);
    true
}

/// Starts announced threads. If the system gives no more, the remaining announcements are
/// withdrawn: the next look tries again.
fn start_threads(stage: &Arc<Shared>, announced: usize) {
    for started in 0..announced {
        if let Err(error) = stage.start_thread() {
            stage.warn_of_threads(&error);
            (started + 1..announced).for_each(|_| stage.scheduler.withdraw());
            return;
        }
    }
}
