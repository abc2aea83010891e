//! The worker that the current thread runs.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crossbeam_deque::Worker as Queue;
use greenroom_timing::Span;
use scoped_tls::scoped_thread_local;

use super::core::{Core, WorkerShared, WorkerStats};
use super::pace::Pace;
use crate::cell::{AnyCell, Called, Signal};
use crate::id::ActorId;
use crate::raw::{ActorCell, Running, Turn};
use crate::receive::{Receive, Sealed};

scoped_thread_local!(static LOCAL: Local);

/// The depth of actors that ask actors that ask actors …, all on one stack, before the next message
/// is queued.
const INLINE_DEPTH_MAX: u32 = 16;

/// The half of a worker that only its own thread touches.
pub(super) struct Local {
    pub(super) core: Arc<Core>,
    pub(super) number: u16,
    pub(super) queue: Queue<Turn>,
    pub(super) pace: Pace,
    running: Running,
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
            running: Running::new(),
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
        self.note_running(id.0);
        if let Some(turn) = turn.run(&self.pace, &self.running) {
            self.push(turn);
        }
    }

    pub(super) fn note_running(&self, id: u64) {
        let WorkerStats { running, turns, .. } = &*self.shared().stats;
        self.turns.set(self.turns.get() + 1);
        running.store(id, Ordering::Relaxed);
        turns.store(self.turns.get(), Ordering::Relaxed);
    }

    /// Puts an actor into the queue, and wakes a sleeping worker if the queue has another besides.
    ///
    /// No fence stands between the push and the look at who rests, unlike in [`Core::inject`]: a
    /// worker that goes to rest just now may miss the actor, and be missed here. Nothing is lost by
    /// that, as this worker does not rest before its queue is empty. The actor waits for longer
    /// than it need only if another holds this worker; so does one that is alone in the queue,
    /// for which nobody is woken. Both are the watchdog's: at its second look it finds a worker
    /// that is held and has a queue, and wakes another, provided that its rest is still to be
    /// seen, and so that whoever clears it wakes a task that somebody can run
    /// (`fill_lifo_slot`). So messages between actors, which would pay for the fence, go
    /// without.
    pub(super) fn push(&self, turn: Turn) {
        self.queue.push(turn);
        if self.core.has_resting() && self.queue.len() > 1 {
            self.core.wake_any();
        }
    }

    pub(super) fn shared(&self) -> &WorkerShared {
        self.core.worker(self.number)
    }
}

thread_local! {
    /// Actors that nobody runs any more and that are to end, while this thread ends one.
    static ORPHANS: RefCell<Option<VecDeque<Turn>>> = const { RefCell::new(None) };
}

/// Kills an actor whose workers are gone, on this thread. Those that its end concerns come after it
/// and not within, however many they are: parents and children would fill the stack.
pub(super) fn end_orphan(turn: Turn) {
    turn.cell().signal(Signal::Kill);
    let is_first = ORPHANS.with_borrow_mut(|orphans| {
        let is_first = orphans.is_none();
        orphans.get_or_insert_default().push_back(turn);
        is_first
    });
    if !is_first {
        return;
    }
    let (pace, running) = (Pace::new(), Running::new());
    let next = || ORPHANS.with_borrow_mut(|orphans| orphans.as_mut()?.pop_front());
    while let Some(turn) = next() {
        let mut left = Some(turn);
        while let Some(turn) = left {
            left = turn.run(&pace, &running);
        }
    }
    ORPHANS.set(None);
}

/// Schedules on the current worker, if that is one of the dispatcher's. Returns the turn otherwise.
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

/// Returns `true` if this thread runs a worker, with an actor or between two of them.
pub(super) fn is_worker() -> bool {
    LOCAL.is_set()
}

/// Calls a function with the worker that this thread runs and the actor whose turn it is, if so.
pub(super) fn with_asker<R>(call: impl FnOnce(&Arc<Core>, u16, ActorId) -> R) -> Option<R> {
    if !LOCAL.is_set() {
        return None;
    }
    LOCAL.with(|local| {
        let asker = local.running.with(|actor| actor.cell().id())?;
        Some(call(&local.core, local.number, asker))
    })
}

/// Returns a reference to the actor whose turn it is on this thread.
pub(crate) fn keep_running_actor() -> Option<Arc<dyn AnyCell>> {
    if !LOCAL.is_set() {
        return None;
    }
    LOCAL.with(|local| local.running.with(|actor| actor.keep()))
}

/// Calls the handler of an actor on the spot, if the current worker is of its dispatcher, nothing
/// waits for it and nobody runs it, and its handler replies at once. The message comes back
/// otherwise; the inner error says that the handler failed.
pub(crate) fn call_here<A, M, K>(cell: &Arc<ActorCell<A>>, message: M) -> Called<A::Reply, M>
where
    A: Receive<M, K>,
{
    // One that is traced goes by the mailbox, so that all others pay for no more than this look.
    if !<A as Sealed<M, K>>::REPLIES_NOW || !LOCAL.is_set() || Span::is_current() {
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
        let asker = local.shared().stats.running.load(Ordering::Relaxed);
        local.note_running(cell.shared.id.0);
        let (turn, called) = local.running.during(cell, || cell.call(turn, message));
        local.pace.count();
        local.note_running(asker);
        local.inline_depth.set(local.inline_depth.get() - 1);
        if let Some(turn) = turn {
            local.push(turn);
        }
        called
    })
}
