//! One turn of an actor: control first, then what waits, then messages up to the quota.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::task;

use futures_util::task::waker_ref;

use super::ending::How;
use super::phase::Phase;
use super::{After, Body};
use crate::actor::Actor;
use crate::dispatcher::Pace;
use crate::mailbox::Overflow;
use crate::raw::{ActorCell, Chain, Envelope, Fault, Running, Served, Turn, Undelivered};
use crate::reason::{Reason, Why};
use crate::supervision::Cause;

/// One turn of an actor.
pub(super) struct Activation<'a, A: Actor> {
    pub(super) cell: &'a ActorCell<A>,
    pub(super) me: &'a Arc<ActorCell<A>>,
    pub(super) body: &'a Body<A>,
    pub(super) turn: &'a Turn,
    pub(super) backlog: Chain<A>,
}

/// The next thing to do, by the phase.
pub(super) enum Step {
    /// Messages may be handled.
    Serve,
    /// The phase changed: look again.
    Again,
    /// Nothing to do before the next signal.
    Suspend,
    Ended,
}

/// The way in which a turn ends.
pub(super) enum Left {
    Again,
    Rest,
    Suspended,
    Ended,
}

/// The reason for which handling messages stopped.
enum Stop {
    Empty,
    Quota,
    Pending,
    /// A signal came, or a failure.
    Interrupted,
}

impl<A: Actor> ActorCell<A> {
    pub(super) fn activate(
        &self,
        turn: &Turn,
        work: impl FnOnce(&mut Activation<'_, A>) -> Left,
        running: &Running,
    ) -> After {
        let body = self.body(turn);
        let mut me = Lent {
            me: body.me.take(),
            body,
        };
        let left = {
            let me = me
                .me
                .as_ref()
                .expect("the holder of the turn finds the cell's reference to itself");
            let mut activation = Activation {
                cell: self,
                me,
                body,
                turn,
                backlog: body.backlog.take(),
            };
            running.during(me, || work(&mut activation))
        };
        match left {
            Left::Ended => {
                let me = me.me.take();
                After::Ended(me.expect("it was there above") as _)
            }
            Left::Again => After::Again,
            Left::Rest => After::Rest {
                is_suspended: false,
            },
            Left::Suspended => After::Rest { is_suspended: true },
        }
    }
}

/// A guard that gives a cell its reference to itself back, also when something panics.
struct Lent<'a, A: Actor> {
    me: Option<Arc<ActorCell<A>>>,
    body: &'a Body<A>,
}

impl<A: Actor> Drop for Lent<'_, A> {
    fn drop(&mut self) {
        if let Some(me) = self.me.take() {
            self.body.me.set(Some(me));
        }
    }
}

impl<A: Actor> Drop for Activation<'_, A> {
    fn drop(&mut self) {
        self.body.backlog.set(std::mem::take(&mut self.backlog));
    }
}

impl<A: Actor> Activation<'_, A> {
    pub(super) fn run(&mut self, pace: &Pace) -> Left {
        let waker = waker_ref(self.me);
        let waker = &mut task::Context::from_waker(&waker);
        let mut quota = self.cell.shared.settings.throughput;
        loop {
            if self.cell.lane().is_signalled() {
                self.cell.lane().acknowledge();
                self.handle_signals();
            }
            let step = if self.body.is_ready() {
                Step::Serve
            } else {
                self.step(waker)
            };
            match step {
                Step::Again => continue,
                Step::Suspend => return Left::Suspended,
                Step::Ended => return Left::Ended,
                Step::Serve => {}
            }
            match self.serve(waker, &mut quota, pace) {
                Stop::Interrupted => {}
                Stop::Pending => return Left::Suspended,
                Stop::Quota => return Left::Again,
                Stop::Empty if self.cell.lane().is_closed() => {
                    // What was sent before the close may have come after the look.
                    if !self.has_more() {
                        self.begin_ending(super::Ending::Stopped);
                    }
                }
                Stop::Empty => return Left::Rest,
            }
        }
    }

    fn serve(&mut self, waker: &mut task::Context<'_>, quota: &mut u32, pace: &Pace) -> Stop {
        loop {
            let Some(envelope) = self.next() else {
                self.notify_room();
                return Stop::Empty;
            };
            let message = envelope.message();
            match self.body.state.serve(waker, envelope) {
                Served::Done => {}
                Served::Pending => {
                    self.notify_room();
                    return Stop::Pending;
                }
                Served::Failed(fault) => {
                    self.notify_room();
                    self.fail(fault, message());
                    return Stop::Interrupted;
                }
            }
            pace.count();
            *quota = quota.saturating_sub(1);
            // First: messages signal too, of a mailbox that drops the oldest, and of one that is
            // full. The next turn begins with what was signalled.
            if *quota == 0 || pace.is_spent() {
                self.notify_room();
                return Stop::Quota;
            }
            if self.cell.lane().is_signalled() {
                return Stop::Interrupted;
            }
        }
    }

    /// Returns `true` if a message waits.
    fn has_more(&mut self) -> bool {
        if self.is_ring() {
            return !self.cell.shared.family().ring.lock().is_empty();
        }
        if self.backlog.is_empty() {
            self.backlog = self.cell.take(self.turn);
        }
        !self.backlog.is_empty()
    }

    fn is_ring(&self) -> bool {
        self.cell.shared.settings.mailbox.on_overflow() == Overflow::DropOldest
    }

    /// Takes the next message, if one waits.
    pub(super) fn next(&mut self) -> Option<Envelope<A>> {
        if self.backlog.is_empty() {
            if self.is_ring() {
                return self.cell.shared.family().ring.lock().pop_front();
            }
            self.backlog = self.cell.take(self.turn);
        }
        let envelope = self.backlog.pop()?;
        self.cell.shared.accounts.take();
        Some(envelope)
    }

    /// Fails in the handler of a message: the message is a dead letter, the rest is the
    /// supervisor's to decide.
    pub(super) fn fail(&mut self, fault: Fault, message: &'static str) {
        let cause = self.cell.dead_letter_failed(fault, message);
        self.give_up(cause, message);
    }

    /// Wakes senders that wait for room.
    pub(super) fn notify_room(&self) {
        let Some(family) = self.cell.shared.family.get() else {
            return;
        };
        let capacity = self.cell.shared.settings.mailbox.capacity();
        let room = capacity.saturating_sub(self.cell.shared.accounts.waiting());
        family.room.notify(room as usize);
    }

    pub(super) fn phase(&self) -> Phase {
        self.body.phase.take()
    }

    pub(super) fn enter(&self, phase: Phase) {
        self.body.phase.enter(phase);
    }

    pub(super) fn mark_ended(&self, ending: &super::Ending) {
        let how = How::of(ending) as u8;
        self.cell.shared.ended.store(how, Ordering::Release);
        // A thread that makes the family after this sees the end; otherwise we see the family.
        fence(Ordering::SeqCst);
    }
}

impl<A: Actor> ActorCell<A> {
    /// Makes a dead letter of a message whose handler failed, and of which nothing is left.
    pub(super) fn dead_letter_failed(&self, fault: Fault, message: &'static str) -> Cause {
        let cause = cause(fault);
        let letter = Undelivered {
            message,
            content: None,
        };
        let why = Why {
            reason: Reason::Failed,
            panic: cause.panic(),
        };
        self.post_dead_letter(letter, why);
        cause
    }
}

pub(super) fn cause(fault: Fault) -> Cause {
    match fault {
        Fault::Panic(panic) => Cause::from_panic(&panic),
        Fault::Error(error) => Cause::from_error(error),
    }
}
