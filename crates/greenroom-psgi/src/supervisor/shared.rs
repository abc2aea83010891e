//! The state that the supervisor's tasks share, and its status.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use greenroom_quantiles::micros;
use tokio::sync::watch;

use super::member::{Member, Reason};
use super::memory;
use crate::perl;
use crate::pool::{Pool, WorkerLoad};
use crate::settings::Settings;
use crate::status::{GatewayStatus, WorkerState, WorkerStatus};
use crate::uploads::Uploads;

pub(crate) struct Shared {
    pub(crate) settings: Arc<Settings>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) uploads: Arc<Uploads>,
    pub(super) counters: Counters,
    /// The directory of the workers' sockets.
    directory: PathBuf,
    members: watch::Sender<Vec<Arc<Member>>>,
    last_key: AtomicU32,
    /// The generation that serves; 0 before there is one.
    generation: AtomicU32,
    is_closed: watch::Sender<bool>,
}

#[derive(Default)]
pub(super) struct Counters {
    pub(super) restarts: AtomicU64,
    pub(super) hung: AtomicU64,
    pub(super) retired: AtomicU64,
    pub(super) reloads: AtomicU64,
    pub(super) reloads_failed: AtomicU64,
}

impl Shared {
    pub(super) fn new(settings: Arc<Settings>, directory: PathBuf) -> Self {
        Self {
            pool: Pool::new(&settings),
            uploads: Uploads::new(settings.limits.uploads_bytes_max),
            settings,
            counters: Counters::default(),
            directory,
            members: watch::Sender::default(),
            last_key: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            is_closed: watch::Sender::new(false),
        }
    }

    pub(super) fn directory(&self) -> &std::path::Path {
        &self.directory
    }

    pub(super) fn socket(&self, key: u32) -> PathBuf {
        perl::worker_socket(&self.directory, key)
    }

    pub(super) fn new_key(&self) -> u32 {
        self.last_key.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the number of the generation that is to follow the one that serves; one is started
    /// at a time.
    pub(super) fn next_generation(&self) -> u32 {
        self.generation.load(Ordering::Relaxed) + 1
    }

    pub(super) fn note_serving(&self, generation: u32) {
        self.generation.store(generation, Ordering::Relaxed);
    }

    /// Notes that no worker can be started any more.
    pub(super) fn close(&self) {
        self.is_closed.send_replace(true);
    }

    pub(super) fn is_closed(&self) -> bool {
        *self.is_closed.borrow()
    }

    pub(crate) async fn closed(&self) {
        // The sender lives as long as we are borrowed.
        self.is_closed.subscribe().wait_for(|is| *is).await.ok();
    }

    pub(super) fn add_member(&self, member: Arc<Member>) {
        self.members.send_modify(|members| members.push(member));
    }

    pub(super) fn remove_member(&self, key: u32) {
        self.members
            .send_modify(|members| members.retain(|member| member.key != key));
    }

    /// Returns all workers, the oldest first.
    pub(super) fn members(&self) -> Vec<Arc<Member>> {
        self.members.borrow().clone()
    }

    /// Returns when there is no worker.
    pub(super) async fn all_gone(&self) {
        // The sender lives as long as we are borrowed.
        let mut members = self.members.subscribe();
        members.wait_for(Vec::is_empty).await.ok();
    }

    /// Has a worker replaced, if it serves and is not to be replaced already.
    pub(super) fn retire(&self, member: &Member, reason: Reason) {
        if member.state() == WorkerState::Ready && member.advance(WorkerState::Retiring) {
            self.counters.retired.fetch_add(1, Ordering::Relaxed);
            tracing::info!("{member} is to be replaced: {reason}");
        }
    }

    pub(crate) fn status(&self) -> GatewayStatus {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let loads = self.pool.loads();
        let members = self.members();
        GatewayStatus {
            application: self.settings.name(),
            mount: self.settings.mount.clone(),
            label: self.settings.label().to_owned(),
            generation: self.generation.load(Ordering::Relaxed),
            workers_wanted: self.settings.limits.workers,
            workers: members
                .iter()
                .map(|member| worker_status(member, &loads))
                .collect(),
            restarts: count(&self.counters.restarts),
            hung: count(&self.counters.hung),
            retired: count(&self.counters.retired),
            reloads: count(&self.counters.reloads),
            reloads_failed: count(&self.counters.reloads_failed),
            queue: self.pool.status(),
        }
    }
}

fn worker_status(member: &Member, loads: &[WorkerLoad]) -> WorkerStatus {
    let load = loads.iter().find(|load| load.key == member.key);
    WorkerStatus {
        key: member.key,
        pid: member.pid.as_raw_nonzero().get(),
        generation: member.generation,
        state: member.state(),
        mode: member.mode().to_owned(),
        running: load.map_or(0, |load| load.running),
        waiting: load.map_or(0, |load| load.waiting),
        served: load.map_or(0, |load| load.served),
        stuck_micros: load.and_then(|load| load.stuck).map_or(0, micros),
        rss_bytes: memory::resident_bytes(member.pid).unwrap_or(0),
        age_seconds: member.born.elapsed().as_secs(),
    }
}
