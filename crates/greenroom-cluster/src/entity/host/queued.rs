use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::wire::{Rejection, Request};

pub(super) type Outcome = Result<Bytes, Rejection>;

/// A message that waits for its entity.
pub(super) struct Queued {
    pub(super) request: Request,
    reply: oneshot::Sender<Outcome>,
    /// Its share of what the host has in flight.
    permit: OwnedSemaphorePermit,
}

impl Queued {
    pub(super) fn new(
        request: Request,
        permit: OwnedSemaphorePermit,
    ) -> (Self, oneshot::Receiver<Outcome>) {
        let (reply, outcome) = oneshot::channel();
        let queued = Self {
            request,
            reply,
            permit,
        };
        (queued, outcome)
    }

    /// Returns `true` if nobody waits for the outcome any more.
    pub(super) fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    /// Returns `true` if the other is the same durable message.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let (one, other) = (&self.request, &other.request);
        one.id == other.id && one.message == other.message
    }

    /// Responds that the message is here. Its share of what is in flight is given back with what is
    /// returned.
    pub(super) fn accept(self) -> (Request, OwnedSemaphorePermit) {
        let _ = self.reply.send(Ok(Bytes::new()));
        (self.request, self.permit)
    }

    pub(super) fn respond(self, outcome: Outcome) {
        // Whoever asked may have left.
        let _ = self.reply.send(outcome);
    }
}
