//! The two tasks of a host: one passivates idle entities, one ends all when the node's lease does.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::Host;
use super::runner::{Begin, run};
use crate::entity::Entity;
use crate::wire::Inbound;

pub(super) fn start<E: Entity>(host: &Arc<Host<E>>, lease: Duration) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    tasks.spawn(passivate(Arc::downgrade(host)));
    let until = host.held_until.clone();
    tasks.spawn(watch_lease(Arc::downgrade(host), until, lease));
    tasks
}

/// Passivates entities that were idle for long, until the host is gone.
async fn passivate<E: Entity>(host: Weak<Host<E>>) {
    loop {
        let next = {
            let Some(host) = host.upgrade() else { return };
            let (now, after) = (Instant::now(), host.settings.passivate_after);
            host.passivate_idle(|since| now >= since + after).await;
            let since = host.table.lock().idle_since();
            // What becomes idle later is due no earlier than this.
            since.unwrap_or(now).min(now) + after
        };
        sleep_until(next).await;
    }
}

impl<E: Entity> Host<E> {
    /// Begins to passivate the entities that are idle since a moment which fits, the one that is
    /// so longest first; waits until it has begun with all.
    pub(super) async fn passivate_idle(self: &Arc<Self>, fits: impl Fn(Instant) -> bool) {
        loop {
            let passivating = Arc::clone(&self.passivating);
            // Never closed.
            let Ok(permit) = passivating.acquire_owned().await else {
                return;
            };
            let Some((id, active)) = self.table.lock().take_idle(&fits, false) else {
                return;
            };
            let host = Arc::clone(self);
            tokio::spawn(async move {
                run(host, id, Begin::Passivate(active)).await;
                drop(permit);
            });
        }
    }
}

/// Ends all activations whenever the node's lease ends, until the host is gone.
async fn watch_lease<E: Entity>(
    host: Weak<Host<E>>,
    mut until: watch::Receiver<Option<Instant>>,
    lease: Duration,
) {
    let mut known = *until.borrow_and_update();
    loop {
        let has_ended = tokio::select! {
            changed = until.changed() => {
                if changed.is_err() {
                    return;
                }
                let before = known;
                known = *until.borrow_and_update();
                was_interrupted(before, known, lease)
            }
            () = end_of(known) => {
                // Nothing ends once more before it begins again.
                known = None;
                true
            }
        };
        if has_ended {
            let Some(host) = host.upgrade() else { return };
            // At the end of an orderly drain there is nothing that could be lost.
            if !host.is_draining() || host.table.lock().len() > 0 {
                let kind = Host::<E>::kind();
                let text = "the lease ended, and with it all entities";
                tracing::warn!(target: super::TARGET, kind, "{text}");
            }
            host.end_all();
        }
    }
}

/// Returns `true` if a lease was renewed after its end, which nobody may have noticed in time.
fn was_interrupted(before: Option<Instant>, now: Option<Instant>, lease: Duration) -> bool {
    before
        .zip(now)
        .is_some_and(|(before, now)| now > before + lease)
}

async fn end_of(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_was_renewed_too_late_was_interrupted() {
        let (now, lease) = (Instant::now(), Duration::from_secs(6));
        let at = |seconds| Some(now + Duration::from_secs(seconds));
        assert!(!was_interrupted(at(6), at(12), lease));
        assert!(was_interrupted(at(6), at(13), lease));
        assert!(!was_interrupted(None, at(13), lease));
    }
}
