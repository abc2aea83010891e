//! Looks at all workers, again and again: replaces those that hang or have served or grown enough,
//! ends those that drain and are idle. It also logs rejections and updates metrics.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};

use super::growth::Growth;
use super::member::{END_WAIT, Member, Reason};
use super::meters::Meters;
use super::rejection_log;
use super::shared::Shared;
use crate::pool::{Ending, WorkerLoad};

/// The interval between looks, if the pool asks for none before.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// The interval between checks of memory, and between updates of metrics.
const SLOW_LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Looks at all workers for ever.
pub(super) async fn watch_workers(shared: Arc<Shared>) {
    let mut looks = interval(LOOK_INTERVAL);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut slow_look_at = Instant::now();
    let mut growth = Growth::default();
    let meters = Meters::new(&shared.status());
    loop {
        tokio::select! {
            now = looks.tick() => {
                rejection_log::tell(&shared);
                if now >= slow_look_at {
                    slow_look_at = now + SLOW_LOOK_INTERVAL;
                    growth.look(&shared, &shared.pool.loads(), now);
                    meters.record(&shared.status());
                }
            }
            () = shared.pool.changed() => {}
        }
        look(&shared, &shared.pool.loads());
    }
}

/// Acts on the pool's snapshots of its workers.
pub(super) fn look(shared: &Shared, loads: &[WorkerLoad]) {
    let members = shared.members();
    for load in loads {
        // The worker is just gone.
        let Some(member) = members.iter().find(|member| member.key == load.key) else {
            continue;
        };
        if let Some(stuck) = load
            .stuck
            .filter(|stuck| *stuck > shared.settings.limits.timeout)
        {
            kill_hung(shared, member, stuck);
        } else if load.condemned {
            member.kill();
        } else if load.lost.is_some_and(|lost| lost > END_WAIT) {
            kill_lost(shared, member);
        } else if load.draining && load.running == 0 && load.waiting == 0 {
            member.may_be_idle.notify_one();
        } else if member.has_served_enough(load.served) {
            shared.retire(member, Reason::Requests(load.served));
        }
    }
}

fn kill_hung(shared: &Shared, member: &Member, stuck: Duration) {
    if !member.note_hung() {
        return;
    }
    let application = shared.settings.name();
    tracing::error!(
        application,
        "{member} has made no progress for {stuck:.1?} (timeout), and is killed"
    );
    shared.counters.hung.fetch_add(1, Ordering::Relaxed);
    shared.pool.note_ending(member.key, Ending::Hung);
    member.kill();
}

/// Kills a worker that closed a connection of its own, and lives on.
fn kill_lost(shared: &Shared, member: &Member) {
    tracing::warn!(
        "{member} has closed a connection and not ended for {END_WAIT:?}, and is killed"
    );
    // So it is logged once.
    shared.pool.condemn(member.key);
    member.kill();
}
