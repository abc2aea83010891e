//! Dispatching: the order, time and connection of each request.

mod queue;
mod quota;

use std::task::{Poll, Waker};

pub(super) use queue::Queue;
pub(super) use quota::Quota;

use crate::run::{Due, Routes, Share};

/// A request that may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) due: Due,
    /// The time since which a connection was free for it.
    pub(super) free_since: u64,
}

impl Ticket {
    fn new(due: Due, free_since: u64) -> Self {
        Self { due, free_since }
    }
}

/// The source of the connections' requests.
#[derive(Debug)]
pub(super) enum Dispatcher {
    Closed(Quota),
    Open(Box<Queue>),
}

/// The number of a connection's slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotId(usize);

impl Dispatcher {
    pub(super) fn new(share: &Share, routes: Routes) -> Self {
        match share.pacer() {
            None => Self::Closed(Quota::new(share.requests, share.sending_ends(), routes)),
            Some(pacer) => Self::Open(Box::new(Queue::new(pacer, share.connections, routes))),
        }
    }

    /// Returns true if no request waits for a connection that is still to be begun.
    pub(super) fn is_over(&self) -> bool {
        match self {
            // Its connections begin with the run, and each ends when no request is left for it.
            Self::Closed(_) => true,
            Self::Open(queue) => queue.pacer.is_over(),
        }
    }

    /// Adds a slot for a connection that serves a target and the others of its origin.
    pub(super) fn enter(&mut self, endpoint: usize) -> SlotId {
        SlotId(match self {
            Self::Closed(quota) => quota.origin_of(endpoint),
            Self::Open(queue) => queue.enter(endpoint),
        })
    }

    /// Polls the next request for a slot that has so many `free` streams; `None` when its
    /// connection is to end.
    pub(super) fn poll_ticket(
        &mut self,
        slot: SlotId,
        now: u64,
        free: usize,
        waker: &Waker,
    ) -> Poll<Option<Ticket>> {
        match self {
            Self::Closed(quota) => Poll::Ready(quota.take_within(slot.0, now)),
            Self::Open(queue) => queue.poll_ticket(slot.0, now, free, waker),
        }
    }

    /// Removes a slot; its dispatched requests that were not sent are dispatched again.
    pub(super) fn leave(&mut self, slot: SlotId) {
        if let Self::Open(queue) = self {
            queue.leave(slot.0);
        }
    }
}
