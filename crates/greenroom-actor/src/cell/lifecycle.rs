//! From the first `started` to the last dead letter.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task;

use tokio::time::Instant;

use super::activation::{Activation, Left, Step, cause};
use super::control::ChildKey;
use super::family::Family;
use super::phase::{Failed, Phase, Restarting};
use super::{AnyCell, Control, Ending, Signal, Terminated, Verdict};
use crate::actor::Actor;
use crate::context::Context;
use crate::panics::{Panic, catch, contain};
use crate::raw::{Envelope, Fault, Job, Served, Undelivered};
use crate::reason::Reason;
use crate::reply;
use crate::supervision::{Cause, Failure};

const STARTED: &str = "started";
const STOPPED: &str = "stopped";

impl<A: Actor> Activation<'_, A> {
    /// Goes on with the phase, if that is not about messages.
    pub(super) fn step(&mut self, waker: &mut task::Context<'_>) -> Step {
        // This is so nearly always, and cheaper than to take the phase out.
        if self.body.phase.is_running() && self.body.state.is_busy() {
            return self.resume_job(waker);
        }
        match self.phase() {
            Phase::New => self.begin(waker, None),
            Phase::Renewed(failure) => self.begin(waker, Some(failure)),
            Phase::Starting => {
                let served = self.body.state.poll(waker);
                self.after_start(served)
            }
            Phase::Running => {
                self.enter(Phase::Running);
                Step::Serve
            }
            Phase::Broken(broken) => {
                self.give_up(broken.cause, broken.message);
                Step::Again
            }
            phase @ Phase::Failed(_) => {
                self.enter(phase);
                Step::Suspend
            }
            Phase::Restarting(restarting) if self.has_children() => {
                self.enter(Phase::Restarting(restarting));
                Step::Suspend
            }
            Phase::Restarting(Restarting { failure, .. }) => {
                self.accept_children(true);
                self.enter(Phase::Renewed(failure));
                Step::Again
            }
            Phase::Ending(ending) if self.has_children() => {
                self.enter(Phase::Ending(ending));
                Step::Suspend
            }
            Phase::Ending(ending) => self.begin_stopped(waker, ending),
            Phase::Stopping => {
                let served = self.body.state.poll(waker);
                self.after_stopped(served)
            }
            Phase::Ended => Step::Ended,
        }
    }

    /// Makes the state and calls `started`, or `restarted`.
    fn begin(&mut self, waker: &mut task::Context<'_>, failure: Option<Arc<Failure>>) -> Step {
        let actor = match catch(|| (self.body.factory)()) {
            Ok(actor) => actor,
            Err(panic) => {
                self.give_up(
                    cause(Fault::Panic(panic)),
                    "the function that makes the actor",
                );
                return Step::Again;
            }
        };
        self.body.state.install(actor);
        let served = match failure {
            None => self.body.state.hook(waker, |actor, context| {
                Job::new(STARTED, actor.started(context))
            }),
            Some(failure) => self.body.state.hook(waker, move |actor, context| {
                Job::new(
                    STARTED,
                    async move { actor.restarted(&failure, context).await },
                )
            }),
        };
        self.after_start(served)
    }

    fn after_start(&mut self, served: Served) -> Step {
        match served {
            Served::Pending => {
                self.enter(Phase::Starting);
                Step::Suspend
            }
            Served::Done => {
                self.enter(Phase::Running);
                Step::Again
            }
            Served::Failed(fault) => {
                // No state that messages may reach.
                self.body.state.vacate();
                self.give_up(cause(fault), STARTED);
                Step::Again
            }
        }
    }

    fn resume_job(&mut self, waker: &mut task::Context<'_>) -> Step {
        let message = self.body.state.about().unwrap_or_default();
        match self.body.state.poll(waker) {
            Served::Pending => Step::Suspend,
            Served::Done => {
                self.unstash();
                Step::Again
            }
            Served::Failed(fault) => {
                self.fail(fault, message);
                Step::Again
            }
        }
    }

    /// Handles everything that a signal may have been about.
    pub(super) fn handle_signals(&mut self) {
        let family = self.cell.shared.family.get();
        let notices = family.map(|family| self.apply_controls(family));
        if !self.body.state.is_busy() {
            self.unstash();
        }
        // In front of the mailbox, but behind a job that runs.
        if let Some(notices) = notices {
            self.put_in_front(notices);
            self.notify_room();
        }
    }

    /// Applies the items of the control lane. Returns the notices in it, which are for the actor.
    fn apply_controls(&mut self, family: &Family<A>) -> Vec<Envelope<A>> {
        let mut notices = Vec::new();
        let controls = std::mem::take(&mut *family.controls.lock());
        for control in controls {
            match control {
                Control::Signal(signal) => {
                    // A user's error is dropped with the last reference to a failure: not in the
                    // midst.
                    let failure = signal.failure();
                    self.handle_signal(signal);
                    contain("an error, when it was dropped", || drop(failure));
                }
                Control::Deliver(envelope) => notices.push(envelope),
            }
        }
        notices
    }

    fn take_controls(&self) -> VecDeque<Control<A>> {
        let family = self.cell.shared.family.get();
        family
            .map(|family| std::mem::take(&mut *family.controls.lock()))
            .unwrap_or_default()
    }

    fn put_in_front(&mut self, envelopes: Vec<Envelope<A>>) {
        for envelope in envelopes.into_iter().rev() {
            self.cell.shared.accounts.let_in();
            self.backlog.push_front(envelope);
        }
    }

    fn unstash(&mut self) {
        let unstashed = self.body.state.with_context(Context::take_unstashed);
        self.put_in_front(unstashed);
    }

    fn handle_signal(&mut self, signal: Signal) {
        match signal {
            Signal::Stop => self.stop(),
            Signal::Kill => self.end_now(Ending::Killed),
            Signal::ChildEnded | Signal::Unused => self.end_if_unused(),
            Signal::ChildFailed { child, failure } => self.decide(child, failure),
            Signal::RestOver { child, verdict } => self.end_rest(child, &verdict),
            Signal::GraceOver { begun } => self.end_grace(begun),
            Signal::Verdict(verdict) => self.apply_verdict(verdict),
            Signal::Fail(failure) => self.hear_failure(failure),
        }
    }

    /// Ends the root if nobody can reach its system any more: no handle and no actor is left.
    fn end_if_unused(&mut self) {
        let shared = &self.cell.shared;
        let is_unused = shared.parent.is_none() && !shared.settings.system.is_used();
        if is_unused && !self.has_children() {
            self.stop();
        }
    }

    fn stop(&mut self) {
        let phase = self.phase();
        let begun = match &phase {
            Phase::Failed(failed) => Some(Ending::Failed(Arc::clone(&failed.failure))),
            Phase::Ending(_) | Phase::Stopping | Phase::Ended => return self.enter(phase),
            // It handles what is in the mailbox first, once it has started.
            _ => None,
        };
        self.enter(phase);
        match begun {
            Some(ending) => self.end_now(ending),
            None => self.close(),
        }
    }

    /// Lets no more messages in, and wakes all who wait to be let in.
    fn close(&self) {
        self.cell.lane().close();
        if let Some(family) = self.cell.shared.family.get() {
            family.room.notify(usize::MAX);
        }
    }

    /// Ends without handling the messages that wait.
    fn end_now(&mut self, ending: Ending) {
        let phase = self.phase();
        match phase {
            Phase::Ended => self.enter(phase),
            Phase::Ending(_) | Phase::Stopping => {
                self.abort();
                self.kill_children();
                self.enter(Phase::Ending(ending));
            }
            _ => {
                self.abort();
                self.begin_ending(ending);
            }
        }
    }

    /// Lets no more in, ends the children, and waits for them.
    pub(super) fn begin_ending(&mut self, ending: Ending) {
        self.close();
        self.close_children(&ending);
        self.enter(Phase::Ending(ending));
    }

    fn begin_stopped(&mut self, waker: &mut task::Context<'_>, ending: Ending) -> Step {
        let is_stopped = matches!(ending, Ending::Stopped);
        if !is_stopped || !self.body.state.is_ready() {
            return self.end(ending);
        }
        let served = self.body.state.hook(waker, |actor, context| {
            Job::new(STOPPED, async move {
                actor.stopped(context).await;
                Ok(())
            })
        });
        self.after_stopped(served)
    }

    fn after_stopped(&mut self, served: Served) -> Step {
        match served {
            Served::Pending => {
                self.enter(Phase::Stopping);
                Step::Suspend
            }
            Served::Done => self.end(Ending::Stopped),
            Served::Failed(fault) => {
                let cause = cause(fault);
                let path = self.cell.path();
                contain("an error, when it was logged", || {
                    tracing::error!(target: "greenroom::actor", path, %cause, "`stopped` failed");
                });
                self.end(Ending::Stopped)
            }
        }
    }

    fn end(&mut self, ending: Ending) -> Step {
        self.enter(Phase::Ended);
        contain("what an actor set aside, when it was dropped", || {
            self.dead_letter_all();
            self.body.state.vacate();
            self.body.state.with_context(Context::let_go);
        });
        self.mark_ended(&ending);
        contain("a watcher of an end", || self.notify_end(ending));
        let shared = &self.cell.shared;
        shared.settings.counts.ended();
        match &shared.parent {
            Some(parent) => parent.disown(shared.slot.load(Ordering::Acquire)),
            None => shared.settings.system.let_go(),
        }
        shared.settings.dispatcher.actor_ended();
        Step::Ended
    }

    fn notify_end(&self, ending: Ending) {
        let family = self.cell.shared.family.get();
        let is_traced = tracing::enabled!(target: "greenroom::actor", tracing::Level::DEBUG);
        // A path takes as long as the actor is deep in the tree: built only for a reader.
        if is_traced || family.is_some_and(Family::is_watched) {
            let terminated = Terminated {
                id: self.cell.id(),
                path: self.cell.path().into(),
                ending,
            };
            contain("an error, when it was logged", || {
                let Terminated { path, ending, .. } = &terminated;
                tracing::debug!(target: "greenroom::actor", %path, ?ending, "ended");
            });
            if let Some(family) = family {
                family.notify_end(&terminated);
            }
        }
        let Some(family) = family else { return };
        family.end.notify(usize::MAX);
        family.room.notify(usize::MAX);
        // Signals that came after the last look.
        for control in self.take_controls() {
            if let Control::Deliver(envelope) = control {
                self.cell.dead_letter(envelope, Reason::Ended.into());
            }
        }
    }

    fn dead_letter_all(&mut self) {
        self.cell.lane().close();
        let stashed = self.body.state.with_context(Context::take_stash);
        for envelope in stashed {
            self.cell.dead_letter(envelope, Reason::Ended.into());
        }
        while let Some(envelope) = self.next() {
            self.cell.dead_letter(envelope, Reason::Ended.into());
        }
    }

    /// Drops a job. Its message is a dead letter; a state that has not started goes with it.
    pub(super) fn abort(&mut self) {
        let Some(message) = self.body.state.about() else {
            return;
        };
        reply::give_up(|| self.body.state.cancel());
        if message == STARTED {
            self.body.state.vacate();
        }
        if message != STARTED && message != STOPPED {
            self.cell.post_dead_letter(
                Undelivered {
                    message,
                    content: None,
                },
                Reason::Aborted.into(),
            );
        }
    }

    /// Fails, and leaves the decision to the supervisor.
    pub(super) fn give_up(&mut self, cause: Cause, during: &'static str) {
        let mut failure = self.cell.failure(during, cause);
        failure.has_state &= self.body.state.is_ready();
        let failure = Arc::new(failure);
        contain("an error, when it was logged", || {
            tracing::warn!(target: "greenroom::actor", %failure, "failed");
        });
        self.cell.shared.settings.note_failure();
        match &self.cell.shared.parent {
            Some(parent) => {
                self.enter(Phase::Failed(Failed {
                    failure: Arc::clone(&failure),
                    lost: None,
                }));
                let slot = self.cell.shared.slot.load(Ordering::Acquire);
                let child = ChildKey {
                    slot,
                    id: self.cell.id(),
                };
                parent.signal(Signal::ChildFailed { child, failure });
            }
            None => self.end_now(Ending::Failed(failure)),
        }
    }

    /// Ends an actor of which something panicked outside of its handlers.
    pub(super) fn collapse(&mut self, panic: &Panic) -> Left {
        if self.cell.is_ended() {
            return Left::Ended;
        }
        let cause = Cause::from_panic(panic);
        let failure = self.cell.failure("what is outside of its handlers", cause);
        tracing::error!(
            target: "greenroom::actor",
            %failure,
            "ended: something of it panicked outside of its handlers"
        );
        self.cell.shared.settings.note_failure();
        self.enter(Phase::Running);
        self.end_now(Ending::Failed(Arc::new(failure)));
        Left::Again
    }

    pub(super) fn fail_by(&mut self, cause: Cause, during: &'static str) {
        if self.may_fail() {
            self.abort();
            self.give_up(cause, during);
        }
    }

    /// Fails by a handler's failure, or the end of a linked actor. Where the actor has failed, the
    /// latter counts still: a handler's failure concerned the same state.
    fn hear_failure(&mut self, failure: Box<Failure>) {
        let is_linked = matches!(failure.cause, Cause::Linked(_));
        match self.phase() {
            Phase::Failed(failed) if is_linked => self.enter(Phase::Failed(Failed {
                lost: Some(failure),
                ..failed
            })),
            Phase::Broken(broken) if is_linked => {
                self.give_up(broken.cause, broken.message);
                self.hear_failure(failure);
            }
            phase => {
                self.enter(phase);
                self.fail_by(failure.cause.clone(), failure.during);
            }
        }
    }

    /// Returns `true` if it neither has failed nor ends.
    pub(super) fn may_fail(&self) -> bool {
        let phase = self.phase();
        let is_alive = matches!(phase, Phase::New | Phase::Starting | Phase::Running);
        self.enter(phase);
        is_alive
    }

    /// Applies the supervisor's decision.
    fn apply_verdict(&mut self, verdict: Verdict) {
        let phase = self.phase();
        match (verdict, phase) {
            (_, phase @ (Phase::Ending(_) | Phase::Stopping | Phase::Ended)) => {
                self.enter(phase);
            }
            (Verdict::Stop(failure), _) => {
                self.enter(Phase::Running);
                self.end_now(Ending::Failed(failure));
            }
            (Verdict::Resume, Phase::Failed(failed)) => self.resume(failed),
            (Verdict::Resume, phase) => self.enter(phase),
            // An actor that has not begun needs no restart.
            (Verdict::Restart(_), Phase::New) => self.enter(Phase::New),
            // Its children are ending already, in the time that they had from the beginning.
            (Verdict::Restart(failure), Phase::Restarting(restarting)) => {
                self.enter(Phase::Restarting(Restarting {
                    failure,
                    ..restarting
                }));
            }
            (Verdict::Restart(failure), _) => self.restart(failure),
        }
    }

    fn resume(&mut self, Failed { failure, lost }: Failed) {
        // Without a state there is nothing to resume. The rest that a restart needs is over.
        if !self.body.state.is_ready() {
            return self.restart(failure);
        }
        self.enter(Phase::Running);
        if let Cause::Escalated(of_child) = &failure.cause {
            self.resume_child(of_child.id);
        }
        if let Some(lost) = lost {
            self.hear_failure(lost);
        }
    }

    fn restart(&mut self, failure: Arc<Failure>) {
        self.abort();
        self.body.state.vacate();
        self.body.state.with_context(Context::reset);
        self.unstash();
        self.cell.shared.settings.note_restart();
        // No child is spawned by the old state any more, or the new one would wait for it for ever.
        self.accept_children(false);
        let begun = self.stop_children_in_time();
        self.enter(Phase::Restarting(Restarting { failure, begun }));
    }

    fn end_grace(&self, begun: Instant) {
        let phase = self.phase();
        // Not a later restart's.
        let is_due = matches!(&phase, Phase::Restarting(restarting) if restarting.begun == begun);
        self.enter(phase);
        if is_due {
            self.kill_late_children();
        }
    }
}
