//! A look at all workers, again and again: who hangs, who has served or grown enough, who is idle.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};

use super::member::{Member, Reason};
use super::memory;
use super::shared::Shared;
use crate::pool::{Ending, Seat};
use crate::status::WorkerState;

/// How often there is a look, if nothing asks for one before.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// How often memory is looked at.
const MEMORY_INTERVAL: Duration = Duration::from_secs(1);

/// Never returns.
pub(super) async fn watch_workers(shared: Arc<Shared>) {
    let mut looks = interval(LOOK_INTERVAL);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut memory_at = Instant::now();
    loop {
        tokio::select! {
            now = looks.tick() => if now >= memory_at {
                memory_at = now + MEMORY_INTERVAL;
                look_at_memory(&shared);
            },
            () = shared.pool.changed() => {}
        }
        look(&shared, &shared.pool.seats());
    }
}

/// Acts on what the pool says of its workers.
pub(super) fn look(shared: &Shared, seats: &[Seat]) {
    let members = shared.members();
    for seat in seats {
        // One that is just gone.
        let Some(member) = members.iter().find(|member| member.key == seat.key) else {
            continue;
        };
        if let Some(stuck) = seat.stuck.filter(|stuck| *stuck > shared.settings.timeout) {
            kill_hung(shared, member, stuck);
        } else if seat.condemned {
            member.kill();
        } else if seat.draining && seat.running == 0 && seat.waiting == 0 {
            member.nudge.notify_one();
        } else if member.has_served_enough(seat.served) {
            shared.retire(member, Reason::Requests(seat.served));
        }
    }
}

fn kill_hung(shared: &Shared, member: &Member, stuck: Duration) {
    if !member.note_hung() {
        return;
    }
    tracing::error!("{member} has made no progress for {stuck:?} (timeout), and is killed");
    shared.counters.hung.fetch_add(1, Ordering::Relaxed);
    shared.pool.note_ending(member.key, Ending::Hung);
    member.kill();
}

fn look_at_memory(shared: &Shared) {
    let Some(most) = shared.settings.max_rss else {
        return;
    };
    for member in shared.members() {
        if member.state() != WorkerState::Ready {
            continue;
        }
        if let Some(bytes) = memory::resident_bytes(member.pid).filter(|bytes| *bytes > most) {
            shared.retire(&member, Reason::Memory(bytes));
        }
    }
}
