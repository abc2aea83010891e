//! Which request goes out next, when, and on which connection.

mod queue;
mod quota;

use std::task::{Poll, Waker};

pub(super) use queue::Queue;
pub(super) use quota::Quota;

use crate::run::{Routes, Share};

/// A request that may go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    /// Number of its target.
    pub(super) endpoint: usize,
    /// When it should go, in nanoseconds since the run began.
    pub(super) intended: u64,
    /// Since when a connection was free for it.
    pub(super) free_since: u64,
}

/// Where connections get their requests.
#[derive(Debug)]
pub(super) enum Desk {
    Closed(Quota),
    Open(Box<Queue>),
}

/// A connection's place at the desk.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeatNumber(usize);

impl Desk {
    pub(super) fn new(share: &Share, routes: Routes) -> Self {
        match share.arrivals() {
            None => Self::Closed(Quota::new(share.requests, share.sending_ends(), routes)),
            Some(arrivals) => {
                let queue = Queue::new(arrivals, share.connections, routes);
                Self::Open(Box::new(queue))
            }
        }
    }

    /// Whether no request waits for a connection that is still to be begun.
    pub(super) fn is_over(&self) -> bool {
        match self {
            // Its connections begin with the run, and each ends when there is nothing left for it.
            Self::Closed(_) => true,
            Self::Open(queue) => queue.is_over(),
        }
    }

    /// A seat for a connection that serves a target and those beside it.
    pub(super) fn enter(&mut self, endpoint: usize) -> SeatNumber {
        SeatNumber(match self {
            Self::Closed(quota) => quota.origin_of(endpoint),
            Self::Open(queue) => queue.enter(endpoint),
        })
    }

    /// The next request for a seat that has so many `free` streams; `None` when its connection is to end.
    pub(super) fn poll_ticket(
        &mut self,
        seat: SeatNumber,
        now: u64,
        free: usize,
        waker: &Waker,
    ) -> Poll<Option<Ticket>> {
        match self {
            Self::Closed(quota) => Poll::Ready(quota.take_within(seat.0, now)),
            Self::Open(queue) => queue.poll_ticket(seat.0, now, free, waker),
        }
    }

    /// Gives a seat up; requests that were handed to it and did not go out are handed out again.
    pub(super) fn leave(&mut self, seat: SeatNumber) {
        if let Self::Open(queue) = self {
            queue.leave(seat.0);
        }
    }
}
