//! One actor: the part that any thread may use (`Shared`), and the part for the holder of its turn
//! (`Body`).

mod accounts;
mod activation;
mod control;
mod ending;
pub(crate) mod family;
mod lifecycle;
mod phase;
mod post;
mod supervise;
mod sync;

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32};
use std::time::Duration;

use futures_util::task::ArcWake;
use once_cell::race::OnceBox;
use tokio::time::Instant;

pub(crate) use control::{Control, Signal, Verdict, Watcher};
pub use ending::{Ending, Terminated};
pub(crate) use post::Posted;

use crate::actor::Actor;
use crate::dispatcher::Pace;
use crate::id::ActorId;
use crate::panics::{Panic, contain};
use crate::raw::{ActorCell, Chain, Lane, Running, StateCell, Turn};
use crate::supervision::Cause;
use crate::system::Settings;
use crate::watched::Tie;
use accounts::Accounts;
use ending::How;
use family::{Family, Recent};
use phase::{Broken, Phase, PhaseCell};

/// The part of an actor that any thread may use.
pub(crate) struct Shared<A: Actor> {
    pub(crate) id: ActorId,
    pub(crate) settings: Arc<Settings>,
    pub(crate) parent: Option<Arc<dyn AnyCell>>,
    accounts: Accounts,
    /// The worker that ran it last, as a number within its dispatcher.
    pub(crate) home: AtomicU16,
    /// The slot in the parent's list of children.
    slot: AtomicU32,
    /// The way in which it has ended; [`How::Alive`] before that.
    ended: AtomicU8,
    family: OnceBox<Family<A>>,
}

impl<A: Actor> Shared<A> {
    pub(crate) fn new(
        id: ActorId,
        settings: Arc<Settings>,
        parent: Option<Arc<dyn AnyCell>>,
        name: Option<Box<str>>,
    ) -> Self {
        let family = OnceBox::new();
        if name.is_some() {
            let _ = family.set(Box::new(Family::new(name)));
        }
        Self {
            id,
            home: AtomicU16::new(settings.dispatcher.next_home()),
            settings,
            parent,
            accounts: Accounts::new(),
            slot: AtomicU32::new(u32::MAX),
            ended: AtomicU8::new(How::Alive as u8),
            family,
        }
    }

    pub(crate) fn family(&self) -> &Family<A> {
        self.family.get_or_init(|| Box::new(Family::new(None)))
    }
}

impl<A: Actor> Drop for Shared<A> {
    fn drop(&mut self) {
        if let Some(parent) = self.parent.take() {
            let_go(parent);
        }
    }
}

thread_local! {
    /// Parents to be dropped, while this thread drops one.
    static LET_GO: RefCell<Option<Vec<Arc<dyn AnyCell>>>> = const { RefCell::new(None) };
}

/// Drops a reference to a parent. If that was the last, the parent lets go of its own after it and
/// not within: a long line of them would fill the stack.
fn let_go(parent: Arc<dyn AnyCell>) {
    // Nearly all parents are referred to by others too: those pay for no more than this.
    if Arc::strong_count(&parent) > 1 {
        return;
    }
    let mut parent = Some(parent);
    let is_first = LET_GO.try_with(|line| match &mut *line.borrow_mut() {
        Some(line) => {
            line.extend(parent.take());
            false
        }
        none => {
            *none = Some(Vec::new());
            true
        }
    });
    if is_first != Ok(true) {
        return;
    }
    let next = || LET_GO.with_borrow_mut(|line| line.as_mut()?.pop());
    while let Some(cell) = parent.take().or_else(next) {
        contain("what an actor was made with, when it was dropped", || {
            drop(cell);
        });
    }
    LET_GO.set(None);
}

/// The part of an actor that only the holder of its turn uses.
pub(crate) struct Body<A: Actor> {
    pub(crate) state: StateCell<A>,
    /// Messages that were taken from the lane and not yet handled.
    backlog: Cell<Chain<A>>,
    /// Keeps the cell alive until the actor ends; taken out while it runs.
    pub(crate) me: Cell<Option<Arc<ActorCell<A>>>>,
    phase: PhaseCell,
    factory: Box<dyn Fn() -> A + Send>,
}

impl<A: Actor> Body<A> {
    pub(crate) fn new(state: StateCell<A>, factory: Box<dyn Fn() -> A + Send>) -> Self {
        Self {
            state,
            backlog: Cell::default(),
            me: Cell::new(None),
            phase: PhaseCell::default(),
            factory,
        }
    }

    /// Returns `true` if a message may be handled at once.
    fn is_ready(&self) -> bool {
        self.phase.is_running() && self.state.is_ready()
    }

    /// Leaves a failure to the next turn.
    fn fail_next(&self, cause: Cause, message: &'static str) {
        self.phase.enter(Phase::Broken(Broken { cause, message }));
    }
}

impl<A: Actor> Default for Chain<A> {
    fn default() -> Self {
        Self::new()
    }
}

/// The outcome of a handler that was called on the spot: its reply, or that it failed; or the
/// message, if it could not be called.
pub(crate) type Called<R, M> = Result<Result<R, HandlerFailed>, M>;

/// The panic of a handler, which the actor's next turn deals with.
pub(crate) struct HandlerFailed;

/// The outcome of a turn.
pub(crate) enum After {
    /// There is more to do, after others had their turn.
    Again,
    /// The actor waits for a message, or, suspended, for a signal.
    Rest { is_suspended: bool },
    /// It is over.
    Ended(Arc<dyn AnyCell>),
}

/// The reason for which an actor did not become another's child.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NotAdopted {
    /// The parent ends, or is restarted.
    Closed,
    /// The parent may have no more.
    Full,
}

/// An actor of any type.
pub(crate) trait AnyCell: Send + Sync {
    fn run(&self, turn: &Turn, pace: &Pace, running: &Running) -> After;
    /// Ends the actor as failed, after a panic outside of its handlers.
    fn collapse(&self, turn: &Turn, panic: &Panic) -> After;
    fn lane(&self) -> &Lane;
    fn id(&self) -> ActorId;
    fn settings(&self) -> &Arc<Settings>;
    /// Notes the worker that runs it now. Returns the actor's number.
    fn begin_turn(&self, worker: u16) -> ActorId;
    fn parent(&self) -> Option<&Arc<dyn AnyCell>>;
    fn write_name(&self, path: &mut String);
    fn path(&self) -> String;
    fn waiting(&self) -> u32;
    fn is_ended(&self) -> bool;
    fn children(&self) -> Vec<Arc<dyn AnyCell>>;
    fn signal(&self, signal: Signal);
    fn adopt(&self, child: Arc<dyn AnyCell>) -> Result<(), NotAdopted>;
    fn set_slot(&self, slot: u32);
    fn disown(&self, slot: u32);
    /// Returns `true` while it waits for its restart.
    fn is_resting(&self) -> bool;
    fn set_resting(&self, is_resting: bool);
    /// Notes a failure that began in this moment. Returns what there was of them within this time.
    fn note_failure(&self, since: Instant, within: Duration, kept_max: usize) -> Recent;
    /// Adds a watcher. Returns `false` if it may have no more.
    fn watch(&self, id: ActorId, tie: Tie, watcher: Watcher) -> bool;
    /// Removes the watchers of this number that are tied so.
    fn unwatch(&self, id: ActorId, tie: Tie);
}

impl<A: Actor> ArcWake for ActorCell<A> {
    fn wake_by_ref(cell: &Arc<Self>) {
        cell.look();
    }
}
