//! One of the places of a generation, which always has a worker or gets one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::backoff::{Backoff, HEALTHY_AFTER};
use super::launcher::Launcher;
use super::member::Member;
use super::order::Order;
use crate::status::WorkerState;

/// Keeps a worker in the slot until the generation drains, or its zygote is lost: then its workers
/// serve on by themselves. Without a `worker`, the first could not be started.
pub(super) async fn keep(launcher: Launcher, worker: Option<Arc<Member>>) {
    let orders = launcher.orders.clone();
    tokio::select! {
        () = fill(launcher, worker) => {}
        () = Order::drain(orders) => {}
    }
}

async fn fill(launcher: Launcher, mut worker: Option<Arc<Member>>) {
    let mut backoff = Backoff::default();
    loop {
        if let Some(worker) = &worker {
            worker.reached(WorkerState::Retiring).await;
            if worker.health() >= HEALTHY_AFTER {
                backoff.reset();
            }
        }
        let Some(next) = succeed(&launcher, worker.as_deref(), &mut backoff).await else {
            return;
        };
        if let Some(worker) = worker.replace(next) {
            worker.advance(WorkerState::Draining);
        }
    }
}

/// Starts the next worker: at once for one that is to be replaced, which serves until then; after a
/// rest where one has crashed or could not be loaded. `None` if the zygote is lost.
async fn succeed(
    launcher: &Launcher,
    worker: Option<&Member>,
    backoff: &mut Backoff,
) -> Option<Arc<Member>> {
    let mut has_failed = worker.is_none_or(|worker| worker.state() > WorkerState::Retiring);
    loop {
        if has_failed {
            tokio::time::sleep(backoff.rest()).await;
        }
        if launcher.zygote.is_lost() {
            return None;
        }
        if has_failed {
            let restarts = &launcher.shared.counters.restarts;
            restarts.fetch_add(1, Ordering::Relaxed);
        }
        match launcher.start_worker().await {
            Ok(ready) => return Some(launcher.activate(ready)),
            Err(error) if launcher.zygote.is_lost() => {
                tracing::debug!("no worker without a zygote: {error}");
                return None;
            }
            Err(error) => tracing::error!("a worker could not be started: {error}"),
        }
        has_failed = true;
    }
}
