//! Turns of the connections of a loop that have much to do: that move long bodies, or whose clients
//! sent many requests ahead.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::num::NonZero;
use std::task::{Context, Waker};

use tokio::sync::Notify;
use tokio::task::yield_now;

/// Bytes of bodies that a loop moves before it looks what else has come: some tens of microseconds
/// of copying. Short requests wait for no more of them than that, however many clients send.
const ROUND_BYTES: u64 = 64 * 1_024;

/// The place of a connection in the queue for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(NonZero<u64>);

/// Limits the bytes of bodies that a loop moves in a round, between two looks for new events.
///
/// A connection that serves many requests ends the round. One that would move or serve more waits
/// in a queue, and is called in the order in which they came. The queue has at most two places for
/// each connection of the loop, and one for each response over HTTP/3.
#[derive(Debug)]
pub(crate) struct Bulk {
    /// Bytes that may be moved in this round.
    left: Cell<u64>,
    /// The number of the last ticket whose turn has come.
    called: Cell<u64>,
    /// By their tickets: `called + 1` is the first.
    waiting: RefCell<VecDeque<Waker>>,
    /// A round is to follow.
    wanted: Notify,
}

impl Default for Bulk {
    fn default() -> Self {
        Self {
            left: Cell::new(ROUND_BYTES),
            called: Cell::new(0),
            waiting: RefCell::default(),
            wanted: Notify::new(),
        }
    }
}

impl Bulk {
    /// Returns `true` if the connection may move bytes now: until it has, if it had to wait for its
    /// turn. Otherwise it has a ticket, and its task is woken when its turn has come.
    pub(crate) fn is_turn(&self, ticket: &mut Option<Ticket>, cx: &Context<'_>) -> bool {
        match ticket {
            Some(Ticket(number)) if number.get() > self.called.get() => {
                self.keep_waiting(number.get(), cx);
                return false;
            }
            Some(_) => {}
            None if self.left.get() > 0 && self.waiting.borrow().is_empty() => {}
            None => {
                let mut waiting = self.waiting.borrow_mut();
                waiting.push_back(cx.waker().clone());
                *ticket = NonZero::new(self.called.get() + waiting.len() as u64).map(Ticket);
                self.wanted.notify_one();
                return false;
            }
        }
        true
    }

    /// A connection's task is another one once it is registered.
    fn keep_waiting(&self, number: u64, cx: &Context<'_>) {
        let place = usize::try_from(number - self.called.get() - 1).ok();
        let mut waiting = self.waiting.borrow_mut();
        if let Some(waker) = place.and_then(|place| waiting.get_mut(place)) {
            waker.clone_from(cx.waker());
        }
    }

    /// Counts bytes that a connection has moved, which ends its turn. What is left of the round is
    /// for the next who waits.
    pub(crate) fn spend(&self, bytes: u64, ticket: &mut Option<Ticket>) {
        if bytes == 0 {
            return;
        }
        ticket.take_if(|Ticket(number)| number.get() <= self.called.get());
        let left = self.left.get().saturating_sub(bytes);
        self.left.set(left);
        if left > 0 {
            self.call_next();
        }
    }

    /// Counts what a connection did as a whole round, and has it wait for another one.
    pub(crate) fn spend_round(&self, ticket: &mut Option<Ticket>, cx: &Context<'_>) {
        self.spend(ROUND_BYTES, ticket);
        self.is_turn(ticket, cx);
    }

    /// Ends the turn of a connection that has nothing left to do. If that was short, the round goes
    /// on with the next.
    pub(crate) fn end_turn(&self, ticket: &mut Option<Ticket>, is_short: bool) {
        self.spend(if is_short { 1 } else { ROUND_BYTES }, ticket);
    }

    /// Begins the rounds, for ever.
    pub(crate) async fn run(&self) {
        loop {
            self.wanted.notified().await;
            while !self.waiting.borrow().is_empty() {
                // Until all that is ready has run, and the loop has looked for more.
                yield_now().await;
                self.begin_round();
            }
        }
    }

    fn begin_round(&self) {
        self.left.set(ROUND_BYTES);
        self.call_next();
    }

    fn call_next(&self) {
        let next = self.waiting.borrow_mut().pop_front();
        if let Some(next) = next {
            self.called.set(self.called.get() + 1);
            next.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    fn cx() -> Context<'static> {
        Context::from_waker(Waker::noop())
    }

    /// Returns which of those that wait have their turn.
    fn called(bulk: &Bulk, tickets: &mut [Option<Ticket>]) -> Vec<bool> {
        let waiting = tickets.iter_mut();
        waiting
            .map(|ticket| ticket.is_some() && bulk.is_turn(ticket, &cx()))
            .collect()
    }

    #[test]
    fn a_round_is_spent_and_the_next_one_called_in_order() {
        let bulk = Bulk::default();
        let mut tickets = [None; 3];
        assert!(bulk.is_turn(&mut tickets[0], &cx()));
        bulk.spend(ROUND_BYTES - 1, &mut tickets[0]);
        assert!(bulk.is_turn(&mut tickets[0], &cx()), "a byte is left");
        bulk.spend(ROUND_BYTES, &mut tickets[0]);
        for ticket in &mut tickets {
            assert!(!bulk.is_turn(ticket, &cx()));
            assert!(!bulk.is_turn(ticket, &cx()), "it has one place only");
        }
        bulk.begin_round();
        assert_eq!(called(&bulk, &mut tickets), [true, false, false]);
        assert!(bulk.is_turn(&mut tickets[0], &cx()), "nothing was moved");
        bulk.spend(ROUND_BYTES, &mut tickets[0]);
        assert_eq!(called(&bulk, &mut tickets), [false, false, false]);
        bulk.begin_round();
        assert_eq!(called(&bulk, &mut tickets), [false, true, false]);
        bulk.spend(1, &mut tickets[1]);
        let next = called(&bulk, &mut tickets);
        assert_eq!(next, [false, false, true], "nearly all is left");
    }

    #[test]
    fn who_comes_later_stands_behind_those_who_wait() {
        let bulk = Bulk::default();
        bulk.spend(ROUND_BYTES, &mut None);
        let mut tickets = [None; 3];
        assert!(!bulk.is_turn(&mut tickets[0], &cx()));
        assert!(!bulk.is_turn(&mut tickets[1], &cx()));
        bulk.begin_round();
        assert!(!bulk.is_turn(&mut tickets[2], &cx()), "one waits before it");
        bulk.begin_round();
        assert_eq!(called(&bulk, &mut tickets), [true, true, false]);
        bulk.begin_round();
        assert_eq!(called(&bulk, &mut tickets), [true; 3]);
        assert!(bulk.is_turn(&mut None, &cx()), "nobody waits any more");
    }

    #[test]
    fn who_serves_for_long_has_a_round_to_itself() {
        let bulk = Bulk::default();
        let mut tickets = [None; 2];
        for ticket in &mut tickets {
            assert!(bulk.is_turn(ticket, &cx()) || bulk.left.get() == 0);
            bulk.spend_round(ticket, &cx());
        }
        assert_eq!(called(&bulk, &mut tickets), [false, false]);
        bulk.begin_round();
        assert_eq!(called(&bulk, &mut tickets), [true, false]);
        bulk.spend_round(&mut tickets[0], &cx());
        bulk.begin_round();
        assert_eq!(called(&bulk, &mut tickets), [false, true]);
        // One that is done leaves the rest of its round to the next.
        bulk.end_turn(&mut tickets[1], true);
        assert_eq!(called(&bulk, &mut tickets), [true, false]);
        bulk.spend_round(&mut tickets[1], &cx());
        bulk.end_turn(&mut tickets[0], false);
        assert_eq!(called(&bulk, &mut tickets), [false, false]);
    }

    #[test]
    fn the_task_that_asked_last_is_woken() {
        let bulk = Bulk::default();
        bulk.spend(ROUND_BYTES, &mut None);
        let mut ticket = None;
        let tasks = [Arc::new(Woken::default()), Arc::new(Woken::default())];
        for task in &tasks {
            let waker = Waker::from(Arc::clone(task));
            assert!(!bulk.is_turn(&mut ticket, &Context::from_waker(&waker)));
        }
        bulk.begin_round();
        let woken = tasks.map(|task| task.0.load(Ordering::Relaxed));
        assert_eq!(woken, [false, true]);
    }
}
