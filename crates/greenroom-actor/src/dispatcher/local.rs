//! The worker that the current thread runs, if it does.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crossbeam_deque::Worker as Queue;
use scoped_tls::scoped_thread_local;

use super::core::{Core, Report, Station};
use super::pace::Pace;
use crate::cell::Called;
use crate::raw::{ActorCell, Turn};
use crate::receive::{Receive, Sealed};
use crate::reference::ActorId;

scoped_thread_local!(static LOCAL: Local);

/// Actors that ask actors that ask actors …, all on one stack, before the next question is queued.
const INLINE_DEPTH_MAX: u32 = 16;

/// What only the worker's own thread touches.
pub(super) struct Local {
    pub(super) core: Arc<Core>,
    pub(super) number: u16,
    pub(super) queue: Queue<Turn>,
    pub(super) pace: Pace,
    running: Cell<u64>,
    turns: Cell<u64>,
    inline_depth: Cell<u32>,
}

impl Local {
    pub(super) fn new(core: Arc<Core>, number: u16, queue: Queue<Turn>) -> Self {
        Self {
            core,
            number,
            queue,
            pace: Pace::new(),
            running: Cell::new(0),
            turns: Cell::new(0),
            inline_depth: Cell::new(0),
        }
    }

    /// Makes this the worker of the current thread while the function runs.
    pub(super) fn enter<R>(&self, function: impl FnOnce() -> R) -> R {
        LOCAL.set(self, function)
    }

    /// Gives an actor its turn.
    pub(super) fn run(&self, turn: Turn) {
        let id = turn.cell().begin_turn(self.number);
        self.report(id.0);
        if let Some(turn) = run_caught(turn, &self.pace) {
            self.push(turn);
        }
    }

    pub(super) fn report(&self, id: u64) {
        let Report { running, turns, .. } = &*self.station().report;
        self.running.set(id);
        self.turns.set(self.turns.get() + 1);
        running.store(id, Ordering::Relaxed);
        turns.store(self.turns.get(), Ordering::Relaxed);
    }

    pub(super) fn push(&self, turn: Turn) {
        self.queue.push(turn);
        if self.core.has_resting() && self.queue.len() > 1 {
            self.core.wake_any();
        }
    }

    pub(super) fn station(&self) -> &Station {
        self.core.station(self.number)
    }
}

/// Gives an actor its turn. What a user's type does when it is dropped or formatted may panic where
/// no handler runs: that costs the actor, which never runs again, and nobody else.
pub(super) fn run_caught(turn: Turn, pace: &Pace) -> Option<Turn> {
    match catch_unwind(AssertUnwindSafe(|| turn.run(pace))) {
        Ok(turn) => turn,
        Err(panic) => {
            tracing::error!(target: "greenroom::actor", "an actor is lost: something of it panicked outside of its handlers");
            // To drop it may panic once more.
            std::mem::forget(panic);
            None
        }
    }
}

/// Schedules on the current worker, if that is one of the dispatcher's.
pub(super) fn schedule_here(turn: Turn, dispatcher: &Core) -> Option<Turn> {
    if !LOCAL.is_set() {
        return Some(turn);
    }
    LOCAL.with(|local| {
        if std::ptr::eq(&raw const *local.core, dispatcher) {
            local.push(turn);
            None
        } else {
            Some(turn)
        }
    })
}

/// The actor whose turn it is on this thread.
pub(crate) fn running_actor() -> Option<ActorId> {
    if !LOCAL.is_set() {
        return None;
    }
    let id = LOCAL.with(|local| local.running.get());
    (id != 0).then_some(ActorId(id))
}

/// Calls the handler of an actor on the spot, if the current worker is of its dispatcher, nothing
/// waits for it and nobody runs it, and its handler answers at once. The message comes back
/// otherwise; the inner error says that the handler failed.
pub(crate) fn call_here<A, M, K>(cell: &Arc<ActorCell<A>>, message: M) -> Called<A::Answer, M>
where
    A: Receive<M, K>,
{
    if !<A as Sealed<M, K>>::ANSWERS_NOW || !LOCAL.is_set() {
        return Err(message);
    }
    LOCAL.with(|local| {
        let is_ours = std::ptr::eq(
            &raw const *local.core,
            &raw const *cell.shared.settings.dispatcher,
        );
        // A worker that is to yield gets there by way of the queue.
        if !is_ours || local.inline_depth.get() >= INLINE_DEPTH_MAX || local.pace.is_spent() {
            return Err(message);
        }
        let Some(turn) = cell.claim() else {
            return Err(message);
        };
        local.inline_depth.set(local.inline_depth.get() + 1);
        let asker = local.running.get();
        local.report(cell.shared.id.0);
        let (turn, called) = cell.call(turn, message);
        local.pace.count();
        local.report(asker);
        local.inline_depth.set(local.inline_depth.get() - 1);
        if let Some(turn) = turn {
            local.push(turn);
        }
        called
    })
}
