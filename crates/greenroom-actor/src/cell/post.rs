//! Posting of messages and signals to an actor.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use tokio::time::Instant;

use super::ending::How;
use super::family::{Children, Recent};
use super::{
    After, AnyCell, Called, Control, Ending, HandlerFailed, NotAdopted, Signal, Terminated, Watcher,
};
use crate::actor::Actor;
use crate::dispatcher::{self, Pace};
use crate::id::ActorId;
use crate::mailbox::Overflow;
use crate::notifier::Listener;
use crate::panics::{Panic, catch};
use crate::raw::{ActorCell, Deliver, Envelope, Lane, Running, Turn, Undelivered};
use crate::reason::{Reason, Why};
use crate::receive::Receive;
use crate::supervision::{Cause, Failure};
use crate::system::Settings;
use crate::traced::{self, MessageSpan};
use crate::watched::Tie;

/// The outcome of a message that was posted.
pub(crate) enum Posted<T> {
    Done,
    Full(T),
    Closed(T),
}

impl<A: Actor> ActorCell<A> {
    /// Puts a message into the mailbox, or makes a dead letter of it if the mailbox is full and
    /// drops.
    pub(crate) fn post<T: Deliver<A>>(&self, content: T) -> Posted<T> {
        let mailbox = self.shared.settings.mailbox;
        if mailbox.on_overflow() == Overflow::DropOldest {
            return self.post_to_ring(content);
        }
        if !self.shared.accounts.reserve(mailbox.capacity()) {
            return self.post_to_full(content);
        }
        // Checked before the message is wrapped, and once more when it is pushed.
        if self.lane().is_closed() {
            self.shared.accounts.give_back();
            return Posted::Closed(content);
        }
        match self.push(self.envelop(content)) {
            Ok(Some(turn)) => self.schedule(turn),
            Ok(None) => {}
            Err(late) => {
                self.shared.accounts.give_back();
                self.dead_letter(late, Reason::Ended.into());
            }
        }
        Posted::Done
    }

    fn post_to_full<T: Deliver<A>>(&self, content: T) -> Posted<T> {
        if self.lane().is_closed() {
            return Posted::Closed(content);
        }
        if self.shared.settings.mailbox.on_overflow() == Overflow::DropNewest {
            self.dead_letter(self.envelop(content), Reason::DroppedNewest.into());
            return Posted::Done;
        }
        Posted::Full(content)
    }

    fn post_to_ring<T: Deliver<A>>(&self, content: T) -> Posted<T> {
        if self.lane().is_closed() {
            return Posted::Closed(content);
        }
        // It calls an observer, which it must not under the lock.
        let span = MessageSpan::begin(self, T::message);
        let mut ring = self.shared.family().ring.lock();
        if self.lane().is_closed() {
            return Posted::Closed(content);
        }
        let is_full = ring.len() >= self.shared.settings.mailbox.capacity() as usize;
        let oldest = if is_full { ring.pop_front() } else { None };
        ring.push_back(traced::envelope(content, span));
        drop(ring);
        if let Some(oldest) = oldest {
            self.dead_letter(oldest, Reason::DroppedOldest.into());
        }
        self.look();
        Posted::Done
    }

    /// Posts a message that has no sender to return it to: if it does not fit it is a dead letter.
    pub(crate) fn post_or_dead_letter<T: Deliver<A>>(&self, content: T) {
        let (content, reason) = match self.post(content) {
            Posted::Done => return,
            Posted::Full(content) => (content, Reason::MailboxFull),
            Posted::Closed(content) => (content, Reason::Ended),
        };
        self.dead_letter(self.envelop(content), reason.into());
    }

    /// Returns `true` if senders wait when the mailbox is full.
    pub(crate) fn lets_wait(&self) -> bool {
        self.shared.settings.mailbox.on_overflow() == Overflow::BackPressure
    }

    /// Listens for room. The caller must try once more before it waits.
    pub(crate) fn listen_for_room(&self) -> Listener {
        let listener = self.shared.family().room.listen();
        // An actor that is about to rest may not have seen the family: wake it to look.
        self.look();
        listener
    }

    pub(crate) fn signal_any(&self, signal: Signal) {
        self.control(Control::Signal(signal));
    }

    /// Sends a notice by the control lane.
    pub(crate) fn notify<T: Deliver<A>>(&self, content: T) {
        self.control(Control::Deliver(Envelope::new(content)));
    }

    /// Makes a dead letter of a message.
    pub(crate) fn dead_letter(&self, envelope: Envelope<A>, why: Why<'_>) {
        let letter = envelope.refuse(why.reason);
        self.post_dead_letter(letter, why);
    }

    pub(crate) fn post_dead_letter(&self, letter: Undelivered, why: Why<'_>) {
        let system = &self.shared.settings.system;
        let post = || system.dead_letters.post(&|| self.path(), letter, why);
        // Drops a user's message, whose destructor may panic.
        if catch(post).is_err() {
            let path = self.path();
            tracing::error!(
                target: "greenroom::actor",
                path,
                "a message panicked when it was dropped"
            );
        }
    }

    /// Wakes the actor to look at its control lane, and to poll its job.
    pub(crate) fn look(&self) {
        if let Some(turn) = self.signal() {
            self.schedule(turn);
        }
    }

    /// Calls a handler that replies at once, for the claimant of an idle actor's turn. The turn
    /// comes back if there is more to do, the message if the actor is not ready for it.
    pub(crate) fn call<M, K>(&self, turn: Turn, message: M) -> (Option<Turn>, Called<A::Reply, M>)
    where
        A: Receive<M, K>,
    {
        let body = self.body(&turn);
        if !body.is_ready() {
            return (Some(turn), Err(message));
        }
        let called = body
            .state
            .call(|actor, context| actor.receive_now(message, context));
        let fault = match called {
            Ok(replied) => return (self.give_back(turn), replied.map(Ok)),
            Err(fault) => fault,
        };
        let message = std::any::type_name::<M>();
        body.fail_next(self.dead_letter_failed(fault, message), message);
        (Some(turn), Ok(Err(HandlerFailed)))
    }

    /// Describes a failure of this actor.
    pub(crate) fn failure(&self, during: &'static str, cause: Cause) -> Failure {
        Failure {
            id: self.shared.id,
            path: self.path().into(),
            during,
            has_state: cause.has_state(),
            since: cause.since(),
            cause,
        }
    }

    /// Returns the way in which it has ended; `None` while it lives.
    fn ending(&self) -> Option<Ending> {
        How::stored(self.shared.ended.load(Ordering::Acquire))
    }

    pub(super) fn control(&self, control: Control<A>) {
        let mut controls = self.shared.family().controls.lock();
        // Pairs with `mark_ended`: this sees the end, or the end sees the family.
        fence(Ordering::SeqCst);
        if self.is_ended() {
            drop(controls);
            if let Control::Deliver(envelope) = control {
                self.dead_letter(envelope, Reason::Ended.into());
            }
            return;
        }
        if control.may_repeat() && controls.iter().any(|queued| queued.includes(&control)) {
            return;
        }
        controls.push_back(control);
        drop(controls);
        self.look();
    }

    pub(crate) fn schedule(&self, turn: Turn) {
        let home = self.shared.home.load(Ordering::Relaxed);
        dispatcher::schedule(turn, &self.shared.settings.dispatcher, home);
    }
}

impl<A: Actor> AnyCell for ActorCell<A> {
    fn run(&self, turn: &Turn, pace: &Pace, running: &Running) -> After {
        self.activate(turn, |activation| activation.run(pace), running)
    }

    fn collapse(&self, turn: &Turn, panic: &Panic) -> After {
        self.activate(
            turn,
            |activation| activation.collapse(panic),
            &Running::new(),
        )
    }

    fn lane(&self) -> &Lane {
        Self::lane(self)
    }

    fn id(&self) -> ActorId {
        self.shared.id
    }

    fn settings(&self) -> &Arc<Settings> {
        &self.shared.settings
    }

    fn begin_turn(&self, worker: u16) -> ActorId {
        let home = &self.shared.home;
        if home.load(Ordering::Relaxed) != worker {
            home.store(worker, Ordering::Relaxed);
        }
        self.shared.id
    }

    fn parent(&self) -> Option<&Arc<dyn AnyCell>> {
        self.shared.parent.as_ref()
    }

    fn write_name(&self, path: &mut String) {
        let family = self.shared.family.get();
        if let Some(name) = family.and_then(|family| family.name.as_deref()) {
            path.push_str(name);
        } else {
            let _ = write!(
                path,
                "{}-{}",
                self.shared.settings.type_name(),
                self.shared.id
            );
        }
    }

    fn path(&self) -> String {
        // The root's own path is empty: those of its children begin with one slash.
        let (mut line, mut top): (Vec<&dyn AnyCell>, &dyn AnyCell) = (Vec::new(), self);
        while let Some(parent) = top.parent() {
            line.push(top);
            top = &**parent;
        }
        let mut path = String::new();
        for cell in line.into_iter().rev() {
            path.push('/');
            cell.write_name(&mut path);
        }
        path
    }

    fn waiting(&self) -> u32 {
        match self.shared.family.get() {
            Some(family) if self.shared.settings.mailbox.on_overflow() == Overflow::DropOldest => {
                u32::try_from(family.ring.lock().len()).unwrap_or(u32::MAX)
            }
            _ => self.shared.accounts.waiting(),
        }
    }

    fn is_ended(&self) -> bool {
        self.ending().is_some()
    }

    fn children(&self) -> Vec<Arc<dyn AnyCell>> {
        let Some(family) = self.shared.family.get() else {
            return Vec::new();
        };
        let children = family.children.lock();
        children
            .cells
            .iter()
            .map(|(_, child)| Arc::clone(child))
            .collect()
    }

    fn signal(&self, signal: Signal) {
        self.control(Control::Signal(signal));
    }

    fn adopt(&self, child: Arc<dyn AnyCell>) -> Result<(), NotAdopted> {
        let mut children = self.shared.family().children.lock();
        if children.is_closed {
            return Err(NotAdopted::Closed);
        }
        if children.cells.len() >= self.shared.settings.limits.children as usize {
            return Err(NotAdopted::Full);
        }
        let entry = children.cells.vacant_entry();
        child.set_slot(
            u32::try_from(entry.key()).expect("fewer than 2^32 children fit into memory"),
        );
        entry.insert(child);
        Ok(())
    }

    fn set_slot(&self, slot: u32) {
        self.shared.slot.store(slot, Ordering::Release);
    }

    fn disown(&self, slot: u32) {
        let child = {
            let mut children = self.shared.family().children.lock();
            let Children {
                cells, is_awaited, ..
            } = &mut *children;
            let child = cells.try_remove(slot as usize);
            if cells.is_empty() && *is_awaited {
                drop(children);
                self.control(Control::Signal(Signal::ChildEnded));
            }
            child
        };
        drop(child);
    }

    fn is_resting(&self) -> bool {
        let family = self.shared.family.get();
        family.is_some_and(|family| family.is_resting.load(Ordering::Relaxed))
    }

    fn set_resting(&self, is_resting: bool) {
        if is_resting || self.shared.family.get().is_some() {
            self.shared
                .family()
                .is_resting
                .store(is_resting, Ordering::Relaxed);
        }
    }

    fn note_failure(&self, since: Instant, within: Duration, kept_max: usize) -> Recent {
        self.shared.family().note_failure(since, within, kept_max)
    }

    fn watch(&self, id: ActorId, tie: Tie, watcher: Watcher) -> bool {
        let family = self.shared.family();
        let watchers_max = self.shared.settings.limits.watchers as usize;
        let key = match family.watch(id, tie, watcher, watchers_max) {
            Ok(key) => key,
            Err(watcher) => {
                drop(watcher);
                return false;
            }
        };
        fence(Ordering::SeqCst);
        if let Some(ending) = self.ending() {
            let terminated = Terminated {
                id: self.shared.id,
                path: self.path().into(),
                ending,
            };
            // This one alone: the others are told by the actor itself, which knows more.
            family.notify_one_of_end(key, terminated);
        }
        true
    }

    fn unwatch(&self, id: ActorId, tie: Tie) {
        self.shared.family().unwatch(id, tie);
    }
}
