//! The dispatcher of an open loop.

use std::collections::VecDeque;
use std::iter;
use std::task::{Poll, Waker};

use slab::Slab;

use super::Ticket;
use crate::run::{Due, Pacer, Routes};

/// A queue that dispatches requests when they are due: to a connection with a free stream, else to
/// a new one, else they wait in order.
#[derive(Debug)]
pub(in crate::session) struct Queue {
    pub(in crate::session) pacer: Pacer,
    routes: Routes,
    slots: Slab<Slot>,
    /// For each origin the slots that can take a request, the longest idle first.
    idle: Vec<VecDeque<usize>>,
    /// For each origin its connections, being made or open.
    connections: Vec<usize>,
    connections_max: usize,
    /// The time since which fewer than the most connections are open.
    capacity_since: u64,
    /// Slots whose connections end to make way for another origin.
    leaving: usize,
}

/// The slot of an open connection.
#[derive(Debug)]
struct Slot {
    origin: usize,
    /// Streams that it can take, counting those in the mailbox.
    free: usize,
    free_since: u64,
    mailbox: VecDeque<Ticket>,
    is_idle: bool,
    is_leaving: bool,
    waker: Option<Waker>,
}

impl Queue {
    pub(super) fn new(pacer: Pacer, connections_max: usize, routes: Routes) -> Self {
        Self {
            pacer,
            slots: Slab::new(),
            idle: vec![VecDeque::new(); routes.origins()],
            connections: vec![0; routes.origins()],
            connections_max,
            capacity_since: 0,
            leaving: 0,
            routes,
        }
    }

    /// Dispatches the requests that are due, as far as there are connections for them; a returned
    /// ticket is for a new connection, which counts as open from now on.
    pub(in crate::session) fn dispatch(&mut self, now: u64) -> Option<Ticket> {
        while let Some(due) = self.first_due(now) {
            let origin = self.routes.origin_of(due.target);
            if let Some(number) = self.idle[origin].pop_front() {
                self.advance();
                self.hand(number, due);
            } else if self.open() < self.connections_max {
                self.advance();
                self.connections[origin] += 1;
                return Some(Ticket::new(due, self.capacity_since));
            } else {
                self.displace_idle(origin);
                self.pacer.block_until(Pacer::FREE_CONNECTION);
            }
        }
        None
    }

    /// Returns the number of requests that are due at `now` and were not begun.
    pub(in crate::session) fn waiting(&self, now: u64) -> u64 {
        let handed = self.slots.iter().map(|(_, slot)| slot.mailbox.len() as u64);
        self.pacer.waiting(now) + handed.sum::<u64>()
    }

    /// Ends the queue; calls `never_sent` with the intended time of each request that was not
    /// dispatched, and the time at which sending ended.
    pub(in crate::session) fn abandon(&mut self, never_sent: impl FnMut((u64, u64))) {
        iter::from_fn(|| self.pacer.give_up()).for_each(never_sent);
        self.wake_all();
    }

    /// Notes that a connection ended, or could not be made.
    pub(in crate::session) fn vacate(&mut self, endpoint: usize, now: u64) {
        if self.open() == self.connections_max {
            self.capacity_since = now;
        }
        self.connections[self.routes.origin_of(endpoint)] -= 1;
        self.pacer.unblock();
    }

    pub(super) fn enter(&mut self, endpoint: usize) -> usize {
        self.slots.insert(Slot {
            origin: self.routes.origin_of(endpoint),
            free: 0,
            free_since: 0,
            mailbox: VecDeque::new(),
            is_idle: false,
            is_leaving: false,
            waker: None,
        })
    }

    pub(super) fn poll_ticket(
        &mut self,
        number: usize,
        now: u64,
        free: usize,
        waker: &Waker,
    ) -> Poll<Option<Ticket>> {
        self.pacer.unblock();
        let due = self.first_due(now);
        let is_over = self.pacer.is_over();
        let slot = &mut self.slots[number];
        if let Some(ticket) = slot.mailbox.pop_front() {
            self.has_free(number, free - 1);
            return Poll::Ready(Some(ticket));
        }
        if slot.is_leaving || is_over {
            return Poll::Ready(None);
        }
        slot.free = free;
        if !slot.is_idle {
            slot.free_since = now;
        }
        if let Some(due) = due
            && self.routes.origin_of(due.target) == slot.origin
        {
            let ticket = Ticket::new(due, slot.free_since);
            self.has_free(number, free - 1);
            self.advance();
            return Poll::Ready(Some(ticket));
        }
        slot.waker = Some(waker.clone());
        if !slot.is_idle {
            slot.is_idle = true;
            self.idle[slot.origin].push_back(number);
        }
        if let Some(due) = due {
            // When the request came due, no connection was idle that could have made way.
            self.displace_idle(self.routes.origin_of(due.target));
            if self.slots[number].is_leaving {
                return Poll::Ready(None);
            }
        }
        Poll::Pending
    }

    pub(super) fn leave(&mut self, number: usize) {
        let slot = self.slots.remove(number);
        self.leaving -= usize::from(slot.is_leaving);
        if slot.is_idle {
            self.idle[slot.origin].retain(|idle| *idle != number);
        }
        self.pacer
            .give_back(slot.mailbox.iter().map(|ticket| ticket.due));
    }

    fn open(&self) -> usize {
        self.connections.iter().sum()
    }

    fn first_due(&mut self, now: u64) -> Option<Due> {
        self.pacer.due(now, || self.routes.next())
    }

    /// Removes the first request, which was dispatched.
    fn advance(&mut self) {
        self.pacer.take();
        if self.pacer.is_over() {
            self.wake_all();
        }
    }

    fn has_free(&mut self, number: usize, free: usize) {
        let slot = &mut self.slots[number];
        slot.free = free;
        if slot.is_idle && slot.mailbox.len() >= free {
            slot.is_idle = false;
            self.idle[slot.origin].retain(|idle| *idle != number);
        }
    }

    fn hand(&mut self, number: usize, due: Due) {
        let slot = &mut self.slots[number];
        slot.mailbox.push_back(Ticket::new(due, slot.free_since));
        slot.is_idle = slot.mailbox.len() < slot.free;
        if slot.is_idle {
            self.idle[slot.origin].push_back(number);
        }
        slot.wake();
    }

    /// Ends an idle connection for an origin without any, so that the first request does not wait
    /// for ever.
    fn displace_idle(&mut self, origin: usize) {
        // One leaving connection is enough: requests go in order, so only the first one needs it.
        if self.connections[origin] > 0 || self.leaving > 0 {
            return;
        }
        if let Some(number) = self.idle.iter_mut().find_map(VecDeque::pop_front) {
            let slot = &mut self.slots[number];
            slot.is_idle = false;
            slot.is_leaving = true;
            slot.wake();
            self.leaving += 1;
        }
    }

    fn wake_all(&mut self) {
        for (_, slot) in &mut self.slots {
            slot.wake();
        }
    }
}

impl Slot {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests;
