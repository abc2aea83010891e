//! The watchdog, which finds actors that hold their worker.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Once, Weak};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::core::{Core, WorkerShared};
use crate::id::ActorId;
use crate::panics::contain;
use crate::system;

/// The interval of the watchdog's looks, while actors run.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// The interval of its looks while none does.
const LOOK_EVERY_IDLE: Duration = Duration::from_millis(50);
/// Looks in a row that find the same turn before the actor is named: 10 to 15 ms.
const LOOKS_MAX: u32 = 2;

/// The interval at which the gauges of the systems are recorded.
const PUBLISH_EVERY: Duration = Duration::from_secs(1);

static WATCHED: Mutex<Vec<Weak<Core>>> = Mutex::new(Vec::new());

/// The watchdog's last look at a worker.
#[derive(Default)]
struct Seen {
    turns: u64,
    looks: u32,
}

pub(super) fn watch(core: &Arc<Core>) {
    static STARTED: Once = Once::new();
    let mut watched = WATCHED.lock();
    watched.retain(|core| core.strong_count() > 0);
    watched.push(Arc::downgrade(core));
    drop(watched);
    STARTED.call_once(|| {
        let started = thread::Builder::new()
            .name("actor-watchdog".to_owned())
            .spawn(look_on);
        if let Err(error) = started {
            tracing::error!(
                target: "greenroom::actor",
                %error,
                "no watchdog: the system gave no thread"
            );
        }
    });
}

fn look_on() {
    let mut seen = HashMap::new();
    let mut published = Instant::now();
    let mut gauges = system::Gauges::default();
    loop {
        if published.elapsed() >= PUBLISH_EVERY {
            published = Instant::now();
            // Calls the recorder, which is a user's.
            contain("the recorder of metrics", || gauges.record());
        }
        let cores: Vec<_> = WATCHED.lock().iter().filter_map(Weak::upgrade).collect();
        let is_any_busy = look(&cores, &mut seen);
        drop(cores);
        thread::sleep(if is_any_busy {
            LOOK_EVERY
        } else {
            LOOK_EVERY_IDLE
        });
    }
}

fn look(cores: &[Arc<Core>], seen: &mut HashMap<usize, Seen>) -> bool {
    let mut now = HashMap::new();
    for core in cores {
        for shared in core.workers() {
            let running = shared.stats.running.load(Ordering::Relaxed);
            // Its deadlines are for others to keep. What they call takes messages, not time.
            if shared.stats.is_clock_real.load(Ordering::Relaxed) {
                shared.timetable.go_off_late(tokio::time::Instant::now());
            }
            if running == 0 && !shared.has_waiting() {
                continue;
            }
            let key = std::ptr::from_ref(shared).addr();
            let before = seen.remove(&key).unwrap_or_default();
            let turns = shared.stats.turns.load(Ordering::Relaxed);
            let looks = if before.turns == turns {
                before.looks + 1
            } else {
                0
            };
            if looks > 0 && shared.has_waiting() {
                core.wake_any();
                core.fetch_yielded();
            }
            if looks == LOOKS_MAX && running != 0 && core.kind != "stage" {
                contain("the log of the watchdog", || {
                    name(core, shared, ActorId(running));
                });
            }
            now.insert(key, Seen { turns, looks });
        }
    }
    *seen = now;
    !seen.is_empty()
}

fn name(core: &Core, shared: &WorkerShared, id: ActorId) {
    shared.stats.stalls.fetch_add(1, Ordering::Relaxed);
    let actor =
        system::find_anywhere(id).map_or_else(|| format!("actor {id}"), |actor| actor.path());
    tracing::warn!(
        target: "greenroom::actor",
        %actor,
        dispatcher = %core.name,
        held_millis = (LOOK_EVERY * LOOKS_MAX).as_millis(),
        "an actor holds its worker: what computes or blocks belongs on a stage"
    );
    metrics::counter!("greenroom_actor_stalls_total", "dispatcher" => core.name.to_string())
        .increment(1);
}
