//! Supervision of an actor's children.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::activation::Activation;
use super::control::ChildKey;
use super::{AnyCell, Ending, Signal, Verdict};
use crate::actor::Actor;
use crate::dispatcher;
use crate::id::ActorId;
use crate::panics::{catch, contain};
use crate::supervision::{Cause, Directive, Failure, Scope, Supervision};

impl<A: Actor> Activation<'_, A> {
    /// Returns `true` if children are left. If so, the last of them signals its end.
    pub(super) fn has_children(&self) -> bool {
        let Some(family) = self.cell.shared.family.get() else {
            return false;
        };
        let mut children = family.children.lock();
        children.is_awaited = !children.cells.is_empty();
        children.is_awaited
    }

    pub(super) fn stop_children(&self) {
        for child in self.cell.children() {
            child.signal(Signal::Stop);
        }
    }

    /// Stops the children before a restart, and has those killed that do not end in time: one with
    /// a handler that waits for room here would wait for ever, and this actor for it. Returns this
    /// moment.
    pub(super) fn stop_children_in_time(&self) -> Instant {
        let begun = Instant::now();
        self.stop_children();
        if self.has_children() {
            self.signal_later(Supervision::RESTART_GRACE, Signal::GraceOver { begun });
        }
        begun
    }

    /// Kills the children that are left of a restart's grace.
    pub(super) fn kill_late_children(&self) {
        let children = self.cell.children();
        if children.is_empty() {
            return;
        }
        for child in &children {
            child.signal(Signal::Kill);
        }
        contain("the log", || {
            tracing::warn!(
                target: "greenroom::actor",
                path = self.cell.path(),
                killed = children.len(),
                "killed the children that kept it from its restart"
            );
        });
    }

    /// Resumes the child whose failure was this actor's.
    pub(super) fn resume_child(&self, id: ActorId) {
        let children = self.cell.children();
        if let Some(child) = children.iter().find(|child| child.id() == id) {
            child.signal(Signal::Verdict(Verdict::Resume));
        }
    }

    pub(super) fn kill_children(&self) {
        for child in self.cell.children() {
            child.signal(Signal::Kill);
        }
    }

    /// Accepts no more children, and ends those that are there.
    pub(super) fn close_children(&self, ending: &Ending) {
        let Some(family) = self.cell.shared.family.get() else {
            return;
        };
        family.children.lock().is_closed = true;
        match ending {
            Ending::Stopped => self.stop_children(),
            _ => self.kill_children(),
        }
    }

    pub(super) fn decide(&mut self, key: ChildKey, mut failure: Arc<Failure>) {
        let Some(child) = self.child(key) else { return };
        let supervision = self.cell.shared.settings.supervision.clone();
        let decided = catch(|| supervision.directive(&failure));
        let verdict = match decided.unwrap_or(Directive::Escalate) {
            Directive::Resume if failure.has_state => {
                return self.apply_directive(key, &Verdict::Resume);
            }
            Directive::Stop => return self.apply_directive(key, &Verdict::Stop(failure)),
            Directive::Escalate => return self.escalate(key, failure),
            // A state is made. Whether it fails again is not up to a next message: only the limit
            // and the rest keep that from going on for ever.
            Directive::Resume => Verdict::Resume,
            Directive::Restart => Verdict::Restart(Arc::clone(&failure)),
        };
        let restarts_max = supervision.restarts_max() as usize;
        let recent = child.note_failure(failure.since, supervision.within(), restarts_max + 1);
        if recent.failures > restarts_max {
            // All of them are one failure to those above.
            Arc::make_mut(&mut failure).since = recent.since;
            self.escalate(key, failure);
        } else {
            self.apply_after(rest(&supervision, recent.failures), key, verdict);
        }
    }

    /// Sends the decision to the child, and to its siblings if the scope includes them.
    pub(super) fn apply_directive(&self, key: ChildKey, verdict: &Verdict) {
        let scope = match verdict {
            // A child that goes on does not concern its siblings.
            Verdict::Resume => Scope::OneForOne,
            _ => self.cell.shared.settings.supervision.scope(),
        };
        let concerned = match scope {
            Scope::OneForOne => self.child(key).into_iter().collect(),
            Scope::OneForAll => self.cell.children(),
            // Numbers grow with each spawn, so they say which siblings are younger.
            Scope::RestForOne => {
                let mut children = self.cell.children();
                children.retain(|child| child.id() >= key.id);
                children
            }
        };
        for child in concerned {
            child.set_resting(false);
            child.signal(Signal::Verdict(verdict.clone()));
        }
    }

    /// Ends the wait before a restart. The child may have been restarted with its siblings in the
    /// meantime.
    pub(super) fn end_rest(&self, key: ChildKey, verdict: &Verdict) {
        if self.child(key).is_some_and(|child| child.is_resting()) {
            self.apply_directive(key, verdict);
        }
    }

    /// Accepts children, or not.
    pub(super) fn accept_children(&self, is_open: bool) {
        if let Some(family) = self.cell.shared.family.get() {
            family.children.lock().is_closed = !is_open;
        }
    }

    fn apply_after(&self, rest: Duration, child: ChildKey, verdict: Verdict) {
        if rest.is_zero() {
            self.apply_directive(child, &verdict);
            return;
        }
        if let Some(child) = self.child(child) {
            child.set_resting(true);
        }
        self.signal_later(rest, Signal::RestOver { child, verdict });
    }

    /// Signals this actor after this time, if it lives then.
    fn signal_later(&self, time: Duration, signal: Signal) {
        let me = Arc::downgrade(self.me);
        dispatcher::after(&self.cell.shared.settings.dispatcher, time, move || {
            if let Some(me) = me.upgrade() {
                AnyCell::signal(&*me, signal);
            }
        });
    }

    /// Fails because of a child. At the top of the tree there is no supervisor: the child ends.
    fn escalate(&mut self, child: ChildKey, failure: Arc<Failure>) {
        if self.cell.shared.parent.is_none() {
            contain("an error, when it was logged", || {
                tracing::error!(
                    target: "greenroom::actor",
                    %failure,
                    "ended: it failed too often, or its failure was escalated to the top"
                );
            });
            self.apply_directive(child, &Verdict::Stop(failure));
            return;
        }
        if !self.may_fail() {
            // No supervisor will decide about this actor, and so none about its child.
            if let Some(child) = self.child(child) {
                child.signal(Signal::Verdict(Verdict::Stop(failure)));
            }
            return;
        }
        // The child stays as it is: it goes on with this actor, ends with its restart, or with it.
        let cause = Cause::Escalated(failure);
        self.fail_by(cause, "the supervision of a child");
    }

    fn child(&self, key: ChildKey) -> Option<Arc<dyn AnyCell>> {
        let family = self.cell.shared.family.get()?;
        let children = family.children.lock();
        let child = children.cells.get(key.slot as usize)?;
        (child.id() == key.id).then(|| Arc::clone(child))
    }
}

fn rest(supervision: &Supervision, failures: usize) -> Duration {
    supervision.rest(u32::try_from(failures).unwrap_or(u32::MAX))
}
