//! The workers of one application, and the queue before them. Loops and supervisor share them.

mod accounts;
mod charge;
mod clock;
mod phase;
mod queue;
mod rejections;
mod routes;
mod run;
mod shares;
mod state;
mod status;
#[cfg(test)]
mod tests;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use greenroom_stage::Rejected;
use parking_lot::Mutex;
use tokio::sync::Notify;

pub(crate) use accounts::WorkerLoad;
pub(crate) use charge::{Charge, Origin, RunEnd};
pub(crate) use phase::{Phase, Settlement};
pub(crate) use rejections::Rejections;
pub(crate) use routes::Route;
pub(crate) use run::{Run, Stay, Ticket};
pub use shares::Share;
pub use status::QueueStatus;
pub(crate) use worker::{Ending, Worker};

use crate::settings::Settings;
use clock::now;
use queue::{Turn, Waiter};
use state::State;

/// The pool's decision on a new request.
pub(crate) enum Admission {
    /// The request can be sent at once.
    Run(Run),
    /// The request waits for its turn.
    Wait(Ticket),
    /// The request would wait too long.
    Rejected(Rejected),
}

/// The workers of one application, and the queue before them.
#[derive(Debug)]
pub(crate) struct Pool {
    /// The number that tells pools of one process apart.
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

    /// Acquires a run for a request, or a place in the queue, or rejects it.
    pub(crate) fn acquire(self: &Arc<Self>, origin: Origin) -> Admission {
        let now = now();
        let mut state = self.state.lock();
        if state.queue_is_empty()
            && let Some(given) = state.take_run(origin, now)
        {
            drop(state);
            return Admission::Run(Run::new(Arc::clone(self), given));
        }
        let waiter = match state.enter_queue(origin, now) {
            Ok(waiter) => waiter,
            Err(rejected) => return Admission::Rejected(rejected),
        };
        // It may go before all that wait, and can use a worker that none of them can.
        let turns = state.serve_queue(now);
        drop(state);
        turns.announce();
        Admission::Wait(Ticket::new(Arc::clone(self), waiter))
    }

    /// Counts a request whose turn did not come in time.
    fn too_late(&self, waiter: &Waiter) -> Rejected {
        self.state.lock().too_late(waiter, now())
    }

    /// Removes a request from the queue and returns the turn that it had.
    fn leave_queue(&self, waiter: &Waiter) -> Turn {
        let mut state = self.state.lock();
        let turn = waiter.leave();
        if matches!(turn, Turn::ToCome(_)) {
            state.note_left();
        }
        turn
    }

    /// Releases a run whose request was never sent.
    fn give_back(&self, key: u32, charge: Charge) {
        let (mut settlement, mut phase) = (Settlement::default(), Phase::Running);
        settlement.end_run(&mut phase, Phase::Dropped, charge, RunEnd::Unused);
        self.settle(key, &mut settlement);
    }

    /// Applies the settlement of a worker, and leaves it empty.
    pub(crate) fn settle(&self, key: u32, settlement: &mut Settlement) {
        let now = now();
        let mut state = self.state.lock();
        let is_news = state.settle(key, settlement, now);
        let turns = state.serve_queue(now);
        drop(state);
        turns.announce();
        if is_news {
            self.changed.notify_one();
        }
    }

    /// Returns the number of runs that a worker has released; `None` if the worker is forgotten.
    pub(crate) fn released(&self, key: u32) -> Option<u64> {
        self.state.lock().released(key)
    }

    /// Returns `true` if another worker than this is idle.
    pub(crate) fn has_idle_besides(&self, key: u32) -> bool {
        self.state.lock().has_idle_besides(key, now())
    }

    /// Keeps the worker from ending while a connection that leaves HTTP lasts.
    pub(crate) fn stay(self: &Arc<Self>, key: u32) -> Stay {
        let mut settlement = Settlement::default();
        settlement.changes.enter(Phase::Waiting);
        self.settle(key, &mut settlement);
        Stay::new(Arc::clone(self), key)
    }

    /// Notes that a link to the worker has ended: it is about to end, and gets no more requests.
    pub(crate) fn note_lost(&self, key: u32) {
        self.state.lock().note_lost(key, now());
    }

    /// Notes that the worker broke the protocol: it gets no more requests, and is killed.
    pub(crate) fn condemn(&self, key: u32) {
        self.state.lock().condemn(key);
        self.changed.notify_one();
    }

    /// Adds a worker that is ready: it gets requests from now on.
    pub(crate) fn add(&self, worker: Arc<Worker>) {
        let now = now();
        let mut state = self.state.lock();
        state.add(worker, now);
        let turns = state.serve_queue(now);
        drop(state);
        turns.announce();
    }

    /// Stops sending new requests to a worker.
    pub(crate) fn drain(&self, key: u32) {
        self.state.lock().drain(key);
        self.changed.notify_one();
    }

    /// Notes the reason why a worker is about to be killed.
    pub(crate) fn note_ending(&self, key: u32, ending: Ending) {
        self.state.lock().note_ending(key, ending);
    }

    /// Removes a worker that is gone. The reason stays available to its requests.
    pub(crate) fn remove(&self, key: u32) {
        self.state.lock().remove(key);
    }

    /// Returns the reason why a worker ended, as far as is known.
    pub(crate) fn ending(&self, key: u32) -> Ending {
        self.state.lock().ending(key)
    }

    /// Returns a snapshot of all workers.
    pub(crate) fn loads(&self) -> Vec<WorkerLoad> {
        self.state.lock().loads(now())
    }

    /// Returns when there is something for the supervisor to do: a draining worker became idle, one
    /// has served all that it may, or one broke the protocol.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns the rejections that were not logged yet; at most every 10 s.
    pub(crate) fn take_rejections(&self) -> Option<Rejections> {
        self.state.lock().take_rejections(now())
    }

    pub(crate) fn status(&self) -> QueueStatus {
        self.state.lock().status(now())
    }
}
