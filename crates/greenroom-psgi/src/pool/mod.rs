//! The workers of one application, and the queue before them. Loops and supervisor share it.

mod queue;
mod refusals;
mod routes;
mod run;
mod seat;
mod shares;
mod state;
mod status;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use greenroom_stage::Rejected;
use rustix::process::Pid;
use tokio::sync::{Notify, watch};

pub(crate) use queue::Ticket;
pub(crate) use refusals::Refusals;
pub(crate) use routes::Route;
pub(crate) use run::{Charge, Origin, Run, RunEnd, Stay};
pub(crate) use seat::{Seat, Settlement};
pub use shares::Share;
pub use status::QueueStatus;

use crate::builder::Settings;
use queue::{Turn, Waiter};
use state::State;

/// A worker process that takes requests.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) key: u32,
    pub(crate) pid: Pid,
    pub(crate) socket: PathBuf,
    /// As far as was known when it was ready.
    pub(crate) is_event_driven: bool,
    is_gone: watch::Sender<bool>,
}

impl Worker {
    pub(crate) fn new(key: u32, pid: Pid, socket: PathBuf, is_event_driven: bool) -> Arc<Self> {
        Arc::new(Self {
            key,
            pid,
            socket,
            is_event_driven,
            is_gone: watch::Sender::new(false),
        })
    }

    /// Resolves when the process is gone. Its sockets may outlive it, in a child that its application
    /// has forked.
    pub(crate) async fn gone(&self) {
        // The sender is here.
        let _ = self.is_gone.subscribe().wait_for(|is_gone| *is_gone).await;
    }

    fn note_gone(&self) {
        self.is_gone.send_replace(true);
    }
}

/// Why a worker's end is near.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It ended of itself, or somebody killed it.
    #[default]
    Crashed,
    /// It is killed because its runs made no progress.
    Hung,
    /// It was told to end, and did not in time.
    Retired,
}

/// What a newcomer is told.
pub(crate) enum Admission {
    /// Send your request.
    Run(Run),
    /// Wait for your turn.
    Wait(Ticket),
    /// You would wait too long.
    Refused(Rejected),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Pool {
    /// Tells pools of one process apart.
    id: u64,
    state: Mutex<State>,
    changed: Notify,
}

impl Pool {
    pub(crate) fn new(settings: &Settings) -> Arc<Self> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        Arc::new(Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            state: Mutex::new(State::new(settings, now())),
            changed: Notify::new(),
        })
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// A run for a request, or a place in the queue, or neither.
    pub(crate) fn acquire(self: &Arc<Self>, origin: Origin) -> Admission {
        let now = now();
        let mut state = self.state();
        if state.queue_is_empty()
            && let Some(given) = state.take_run(origin, now)
        {
            drop(state);
            return Admission::Run(Run::new(Arc::clone(self), given));
        }
        let waiter = match state.enter_queue(origin, now) {
            Ok(waiter) => waiter,
            Err(rejected) => return Admission::Refused(rejected),
        };
        // It may go before all who wait, and be content with a worker that none of them can have.
        let turns = state.serve_queue(now);
        drop(state);
        turns.announce();
        Admission::Wait(Ticket::new(Arc::clone(self), waiter))
    }

    /// A request whose turn did not come in time.
    fn too_late(&self, waiter: &Waiter) -> Rejected {
        self.state().too_late(waiter, now())
    }

    /// A request in the queue is wanted no more; what its turn was.
    fn leave_queue(&self, waiter: &Waiter) -> Turn {
        let mut state = self.state();
        let turn = waiter.leave();
        if matches!(turn, Turn::ToCome(_)) {
            state.note_left();
        }
        turn
    }

    /// A run is given back whose request was never sent.
    fn give_back(&self, key: u32, charge: Charge) {
        let mut settlement = Settlement::default();
        settlement.ended.push((charge, RunEnd::Unused));
        self.settle(key, &mut settlement);
    }

    /// Takes into account what a worker has done, and leaves the settlement empty.
    pub(crate) fn settle(&self, key: u32, settlement: &mut Settlement) {
        let now = now();
        let mut state = self.state();
        let is_news = state.settle(key, settlement, now);
        let turns = state.serve_queue(now);
        drop(state);
        turns.announce();
        if is_news {
            self.changed.notify_one();
        }
    }

    /// How many runs a worker has given back; none if it is gone.
    pub(crate) fn released(&self, key: u32) -> Option<u64> {
        self.state().released(key)
    }

    /// Whether another worker than this has nothing to do.
    pub(crate) fn has_idle_besides(&self, key: u32) -> bool {
        self.state().has_idle_besides(key, now())
    }

    /// A connection that has left HTTP keeps the worker from ending.
    pub(crate) fn stay(self: &Arc<Self>, key: u32) -> Stay {
        let mut settlement = Settlement {
            stayed: 1,
            ..Settlement::default()
        };
        self.settle(key, &mut settlement);
        Stay::new(Arc::clone(self), key)
    }

    /// A link to the worker has ended, so it is about to end: it gets nothing more.
    pub(crate) fn note_lost(&self, key: u32) {
        self.state().note_lost(key, now());
    }

    /// The worker broke the protocol: it gets nothing more, and has to go.
    pub(crate) fn condemn(&self, key: u32) {
        self.state().condemn(key);
        self.changed.notify_one();
    }

    /// A worker is ready: it gets requests from now on.
    pub(crate) fn add(&self, worker: Arc<Worker>) {
        let now = now();
        let mut state = self.state();
        state.add(worker, now);
        let turns = state.serve_queue(now);
        drop(state);
        turns.announce();
    }

    /// A worker gets no new requests.
    pub(crate) fn drain(&self, key: u32) {
        self.state().drain(key);
        self.changed.notify_one();
    }

    /// Why a worker is about to be killed.
    pub(crate) fn note_ending(&self, key: u32, ending: Ending) {
        self.state().note_ending(key, ending);
    }

    /// A worker is gone. Why stays known to those who still ask.
    pub(crate) fn remove(&self, key: u32) {
        self.state().remove(key);
    }

    /// Why a worker ended, as far as is known.
    pub(crate) fn ending(&self, key: u32) -> Ending {
        self.state().ending(key)
    }

    /// A look at all workers.
    pub(crate) fn seats(&self) -> Vec<Seat> {
        self.state().seats(now())
    }

    /// Resolves when there is something that the supervisor may care for: a draining worker that
    /// became idle, one that has served all that it may, one that broke the protocol.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// What was refused and not told of yet; at most every 10 s.
    pub(crate) fn take_refusals(&self) -> Option<Refusals> {
        self.state().take_refusals(now())
    }

    pub(crate) fn status(&self) -> QueueStatus {
        self.state().status(now())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// By tokio's clock, which tests set.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
