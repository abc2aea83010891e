//! The runner of an entity: a task that gives it its messages one by one, as long as there are any.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::Host;
use super::activate::{Active, not_active};
use super::queued::{Outcome, Queued};
use super::table::{Next, Room};
use crate::entity::cell::Begun;
use crate::entity::{Entity, StateError};
use crate::names::EntityId;
use crate::wire::{Rejection, Request};

/// The longest wait until an entity that is stopped has ended: it may be in a handler that blocks.
/// Then it is left alone; it cannot save any more.
const ENDING_MAX: Duration = Duration::from_secs(10);

/// The beginning of a runner.
pub(super) enum Begin<E: Entity> {
    /// With messages.
    Run(Option<Active<E>>),
    /// By ending the activation.
    Passivate(Active<E>),
}

pub(super) async fn run<E: Entity>(host: Arc<Host<E>>, id: EntityId, begin: Begin<E>) {
    let mut watch = Watch {
        host: &host,
        id: &id,
        is_over: false,
    };
    let mut active = match begin {
        Begin::Run(active) => active,
        Begin::Passivate(active) => {
            host.passivate(&id, active).await;
            None
        }
    };
    loop {
        if let Some(ended) = active.take_if(|active| host.is_over(active)) {
            host.end(&id, ended).await;
        }
        let next = {
            let mut table = host.table.lock();
            let may_rest = active.as_ref().is_some_and(|active| host.may_rest(active));
            table.next(&id, host.resting_since(active.as_ref()), may_rest)
        };
        match next {
            Next::Handle(queued) => host.serve(&id, &mut active, queued).await,
            Next::End => {
                if let Some(active) = active.take() {
                    host.passivate(&id, active).await;
                }
            }
            Next::Rest => break,
        }
    }
    watch.is_over = true;
    host.changed.notify_waiters();
}

impl<E: Entity> Host<E> {
    async fn serve(
        self: &Arc<Self>,
        id: &EntityId,
        active: &mut Option<Active<E>>,
        queued: Queued,
    ) {
        if queued.is_abandoned() {
            return;
        }
        if active.is_none() {
            if !self.has_room() {
                return self.reject_all(id, queued, &Rejection::busy(None));
            }
            match self.activate(id).await {
                Ok(activated) => {
                    self.table.lock().set_active(id, Some(activated.clone()));
                    *active = Some(activated);
                }
                Err(rejection) => return self.reject_all(id, queued, &rejection),
            }
        }
        let Some(entity) = &active else { return };
        if !self.is_held() || self.is_over(entity) {
            return queued.respond(Err(not_active("the node has lost its lease")));
        }
        if queued.request.timeout.is_none() && queued.request.id.is_none() {
            return self.tell_one(id, active, queued).await;
        }
        let outcome = self.handle_one(entity, &queued.request).await;
        let is_over = outcome.as_ref().is_err_and(is_fatal);
        if queued.request.id.is_some() {
            // Sent again meanwhile, for whoever waited has left: others wait for the same outcome.
            let same = |copy: &Queued| queued.is_same(copy);
            let copies = self.table.lock().take_queued(id, same);
            for copy in copies {
                copy.respond(outcome.clone());
            }
        }
        queued.respond(outcome);
        if is_over && let Some(active) = active.take() {
            self.end(id, active).await;
        }
    }

    /// Returns `true` if an entity may be activated: also one that made room for another, and that
    /// a message came for meanwhile.
    fn has_room(self: &Arc<Self>) -> bool {
        let room = self.table.lock().make_room(&self.limits());
        match room {
            Room::Free => true,
            Room::By((id, active)) => {
                self.run(id, Begin::Passivate(active));
                true
            }
            Room::None => false,
        }
    }

    /// Handles a message of which nobody waits for more than that it is here.
    async fn tell_one(&self, id: &EntityId, active: &mut Option<Active<E>>, queued: Queued) {
        let Some(entity) = &active else { return };
        let request = queued.accept();
        if let Err(rejection) = self.handle_one(entity, &request.0).await {
            self.meters.dead_letter(rejection.label());
            let (kind, message) = (Self::kind(), &request.0.message);
            tracing::debug!(target: super::TARGET, kind, %message, %rejection, "dead letter");
            if is_fatal(&rejection)
                && let Some(active) = active.take()
            {
                self.end(id, active).await;
            }
        }
    }

    /// Gives a message to an entity, and waits until it is handled to its reply: then the next one
    /// can be given to it, and what it saved meanwhile belongs to this one.
    async fn handle_one(&self, active: &Active<E>, request: &Request) -> Outcome {
        if let Some(id) = &request.id {
            match active.cell.begin(&request.message, id) {
                Begun::New => {}
                Begun::Applied => return Ok(bytes::Bytes::new()),
                Begun::Full(wait) => return Err(Rejection::busy(Some(wait))),
            }
        }
        let (actor, payload) = (active.actor.clone(), request.payload.clone());
        let within = Some(self.settings.handling_timeout);
        let handling = self
            .handlers
            .handle(actor, &request.message, payload, within);
        let mut outcome = handling.await;
        if let (Err(Rejection::Late), Some(_)) = (&outcome, &request.id) {
            // A failure: the servers are not to deliver it for ever.
            outcome = Err(Rejection::too_slow(self.settings.handling_timeout));
        }
        if outcome.as_ref().is_err_and(is_fatal) {
            // What it changed before it failed is not saved.
            active.cell.end();
            return outcome;
        }
        let within = self.settings.handling_timeout;
        match timeout(within, active.cell.finish(outcome.is_ok())).await {
            // Nobody reads the reply to a durable message; and it may be too long to be sent.
            Ok(Ok(())) if request.id.is_some() => outcome.map(|_| bytes::Bytes::new()),
            Ok(Ok(())) => outcome,
            Ok(Err(error)) => Err(not_saved(&error)),
            Err(_) => {
                active.cell.end();
                let within = humantime::format_duration(within);
                Err(not_active(format!(
                    "its state was not saved within {within}"
                )))
            }
        }
    }

    fn reject_all(&self, id: &EntityId, first: Queued, rejection: &Rejection) {
        let waiting = self.table.lock().take_queue(id);
        for queued in std::iter::once(first).chain(waiting) {
            queued.respond(Err(rejection.clone()));
        }
    }

    /// Ends an activation that was idle: its actor handles what is in its mailbox.
    async fn passivate(&self, id: &EntityId, active: Active<E>) {
        active.actor.stop();
        self.counts.passivated();
        self.end_stopped(id, active).await;
    }

    /// Ends an activation that failed, or must not go on.
    async fn end(&self, id: &EntityId, active: Active<E>) {
        if let Some(StateError::Fenced) = active.cell.end_reason() {
            self.counts.fenced();
        }
        active.cell.end();
        active.actor.kill();
        self.end_stopped(id, active).await;
    }

    async fn end_stopped(&self, id: &EntityId, active: Active<E>) {
        let key = active.cell.key();
        let ended = timeout(ENDING_MAX, active.actor.terminated()).await;
        if ended.is_err() {
            active.actor.kill();
            tracing::warn!(target: super::TARGET, %key, "it does not end, and is left alone");
        } else if self.is_held() && timeout(ENDING_MAX, active.cell.tidy()).await.is_err() {
            tracing::info!(target: super::TARGET, %key, "its old ids stay in its record");
        }
        active.cell.end();
        // A lease that was lost with the node's is not worth a question to the server.
        if self.is_held() {
            self.release(key, active.cell.fence()).await;
        }
        self.table.lock().set_active(id, None);
    }
}

/// Returns `true` if an entity may have failed: its state in memory is not to be relied upon.
fn is_fatal(rejection: &Rejection) -> bool {
    matches!(
        rejection,
        Rejection::Failed { .. } | Rejection::Ended | Rejection::Late
    )
}

/// Another delivery of the message may be saved, unless it is the state that cannot be.
fn not_saved(error: &StateError) -> Rejection {
    match error {
        StateError::TooLarge { .. } | StateError::NotEncoded { .. } => Rejection::Failed {
            error: error.to_string(),
        },
        _ => not_active(error),
    }
}

/// Removes an entity whose runner panics, as a type may do when it is decoded, or is dropped.
struct Watch<'a, E: Entity> {
    host: &'a Host<E>,
    id: &'a EntityId,
    is_over: bool,
}

impl<E: Entity> Drop for Watch<'_, E> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let (active, waiting) = self.host.table.lock().remove(self.id);
        if let Some(active) = active {
            active.cell.end();
            active.actor.kill();
        }
        for queued in waiting {
            queued.respond(Err(Rejection::Ended));
        }
        self.host.changed.notify_waiters();
    }
}
