use std::rc::Rc;
use std::task::Context;

use crate::connection::SHORT_BODY_BYTES;
use crate::event_loop::{Bulk, Clock, Ticket};

/// The turns of a connection whose frames hyper reads and writes, where a long body is not told
/// from many short ones: it waits for its turn with what is beyond 16 KiB in a tick of the clock.
#[derive(Debug)]
pub(super) struct Turns {
    bulk: Rc<Bulk>,
    clock: Clock,
    ticket: Option<Ticket>,
    /// Bytes that were moved in a tick, the last one in which there were any.
    moved: u64,
    tick: u32,
}

impl Turns {
    pub(super) fn new(bulk: Rc<Bulk>, clock: Clock) -> Self {
        Self {
            bulk,
            clock,
            ticket: None,
            moved: 0,
            tick: 0,
        }
    }

    /// Returns `true` if the connection may move bytes now. Otherwise its task is woken when its
    /// turn has come.
    pub(super) fn is_turn(&mut self, cx: &Context<'_>) -> bool {
        let now = self.clock.now();
        if self.tick != now {
            self.tick = now;
            self.moved = 0;
        }
        let is_short = self.ticket.is_none() && self.moved < SHORT_BODY_BYTES;
        is_short || self.bulk.is_turn(&mut self.ticket, cx)
    }

    /// Counts bytes that were moved.
    pub(super) fn spend(&mut self, bytes: usize) {
        self.moved += bytes as u64;
        if self.ticket.is_some() || self.moved > SHORT_BODY_BYTES {
            self.bulk.spend(bytes as u64, &mut self.ticket);
        }
    }
}
