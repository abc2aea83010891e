//! The pacing of an open loop.

use std::collections::VecDeque;
use std::iter::{self, Peekable};
use std::mem;

use crate::plan::Arrivals;
use crate::record::Tally;

/// The pacer of an open loop: says which request is due, which waits, and which is never sent.
///
/// It has neither I/O nor a clock: methods that depend on the time take it as `now`, in nanoseconds
/// since the run began. Requests that wait take no memory, as their times follow from the schedule.
#[derive(Debug)]
pub(crate) struct Pacer {
    /// The intended time of the first request that was never taken.
    head: Option<u64>,
    /// The target of `head`, once it came due.
    target: Option<usize>,
    /// The intended times of the requests after `head`.
    later: Arrivals,
    /// Requests that were given back, which go before all others.
    returned: VecDeque<Due>,
    /// The intended times of the requests that were not counted as due yet.
    uncounted: Peekable<Arrivals>,
    /// The time until which the first request waits although it is due.
    blocked_until: Option<u64>,
    /// The time at which sending ends.
    ends: u64,
}

/// A request that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// The intended time.
    pub(crate) intended: u64,
    /// The number that the engine chose for it: of a target, or of a group of targets.
    pub(crate) target: usize,
}

impl Pacer {
    /// The time at which a connection becomes free, which is not known: see [`Pacer::unblock`].
    pub(crate) const FREE_CONNECTION: u64 = u64::MAX;

    /// Creates a pacer of these requests, of which none is sent after the time `ends`.
    pub(crate) fn new(mut arrivals: Arrivals, ends: u64) -> Self {
        Self {
            uncounted: arrivals.clone().peekable(),
            head: arrivals.next(),
            target: None,
            later: arrivals,
            returned: VecDeque::new(),
            blocked_until: None,
            ends,
        }
    }

    /// Returns the first request if it is due; [`Pacer::take`] removes it. `choose` gives its
    /// target once: a request keeps its turn while it waits.
    pub(crate) fn due(&mut self, now: u64, choose: impl FnOnce() -> usize) -> Option<Due> {
        if self.blocked_until.is_some_and(|until| now < until) {
            return None;
        }
        self.blocked_until = None;
        if let Some(returned) = self.returned.front() {
            return Some(*returned);
        }
        let intended = self.head.filter(|intended| *intended <= now)?;
        let target = *self.target.get_or_insert_with(choose);
        Some(Due { intended, target })
    }

    /// Removes the first request.
    pub(crate) fn take(&mut self) -> Option<u64> {
        if let Some(returned) = self.returned.pop_front() {
            return Some(returned.intended);
        }
        self.target = None;
        mem::replace(&mut self.head, self.later.next())
    }

    /// Takes requests back that were not sent.
    pub(crate) fn give_back(&mut self, requests: impl IntoIterator<Item = Due>) {
        self.returned.extend(requests);
        // They may be for a target that has a connection, other than the one that waited.
        self.unblock();
    }

    /// Lets the first request wait until a time, or for [`Pacer::FREE_CONNECTION`].
    pub(crate) fn block_until(&mut self, time: u64) {
        self.blocked_until = Some(time);
    }

    /// Ends the wait for a connection; false if there was none.
    pub(crate) fn unblock(&mut self) -> bool {
        let is_for_connection = |until: &mut u64| *until == Self::FREE_CONNECTION;
        self.blocked_until.take_if(is_for_connection).is_some()
    }

    /// Returns the time at which a request is due or sending ends, unless a connection becomes free
    /// before; `None` if no request is left.
    pub(crate) fn wakes_at(&self) -> Option<u64> {
        let returned = self.returned.front().map(|due| due.intended);
        let next = returned.or(self.head)?;
        let blocked = self.blocked_until.map(|until| until.min(self.ends));
        Some(blocked.unwrap_or(next))
    }

    /// Returns the time at which the next request comes due, even if others wait before it, or at
    /// which sending ends; `None` after that.
    pub(crate) fn next_arrival(&mut self, now: u64) -> Option<u64> {
        let next = self.uncounted.peek().copied().unwrap_or(self.ends);
        (!self.has_ended(now)).then(|| next.min(self.ends))
    }

    /// Returns the number of requests that came due since the last call.
    pub(crate) fn count_due(&mut self, now: u64) -> u64 {
        iter::from_fn(|| self.uncounted.next_if(|time| *time <= now)).count() as u64
    }

    /// Returns the number of requests that wait although they are due.
    pub(crate) fn waiting(&self, now: u64) -> u64 {
        let in_order = self.head.into_iter().chain(self.later.clone());
        (self.returned.len() + in_order.take_while(|time| *time <= now).count()) as u64
    }

    /// Returns true if no request is left.
    pub(crate) fn is_over(&self) -> bool {
        self.head.is_none() && self.returned.is_empty()
    }

    /// Returns true if nothing more is to be sent.
    ///
    /// The last requests come due right before the end, and may be sent a little after it; those
    /// that wait for a connection may not.
    pub(crate) fn has_ended(&self, now: u64) -> bool {
        let is_blocked = self.blocked_until.is_some() || self.is_over();
        let grace = if is_blocked { 0 } else { Tally::LATE_NS };
        now >= self.ends.saturating_add(grace)
    }

    /// Removes the first request as one that is never sent; returns its intended time and the time
    /// at which sending ended.
    pub(crate) fn give_up(&mut self) -> Option<(u64, u64)> {
        Some((self.take()?, self.ends))
    }
}

#[cfg(test)]
mod tests;
