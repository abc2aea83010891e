//! Looks at all workers, again and again: replaces those that hang or have served or grown enough,
//! ends those that drain and are idle. It also logs rejections and updates metrics.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};

use super::growth::Growth;
use super::member::{END_WAIT, Member, Reason};
use super::shared::Shared;
use super::{meters, refusing};
use crate::pool::{Ending, Seat};

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
    loop {
        tokio::select! {
            now = looks.tick() => {
                refusing::tell(&shared);
                if now >= slow_look_at {
                    slow_look_at = now + SLOW_LOOK_INTERVAL;
                    growth.look(&shared, &shared.pool.seats(), now);
                    meters::record(&shared.status());
                }
            }
            () = shared.pool.changed() => {}
        }
        look(&shared, &shared.pool.seats());
    }
}

/// Acts on the pool's snapshots of its workers.
pub(super) fn look(shared: &Shared, seats: &[Seat]) {
    let members = shared.members();
    for seat in seats {
        // The worker is just gone.
        let Some(member) = members.iter().find(|member| member.key == seat.key) else {
            continue;
        };
        if let Some(stuck) = seat.stuck.filter(|stuck| *stuck > shared.settings.timeout) {
            kill_hung(shared, member, stuck);
        } else if seat.condemned {
            member.kill();
        } else if seat.lost.is_some_and(|lost| lost > END_WAIT) {
            kill_lost(shared, member);
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
