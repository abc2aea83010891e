//! The state that the tasks of a thread share.

use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::Instant;

use super::connect::Failure;
use super::connection;
use super::dispatcher::{Dispatcher, SlotId, Ticket};
use super::exchange::{Exchange, Received, Sample};
use super::outcomes::Outcomes;
use super::request::Messages;
use crate::record::{FirstResponse, Recorder};
use crate::run::Routes;
use crate::run::{Endpoint, Share};

/// The longest time-out: a week, as the longest schedule.
const TIMEOUT_MAX: Duration = Duration::from_hours(7 * 24);

/// The state that the tasks of a thread share.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) share: Share,
    endpoints: Vec<Endpoint>,
    pub(super) messages: Messages,
    /// Notified when the last connection ended and nothing more is sent, or when the thread gives
    /// up.
    pub(super) settled: Notify,
    pub(super) dispatcher: RefCell<Dispatcher>,
    pub(super) outcomes: RefCell<Outcomes>,
    /// Number of tasks that make or hold a connection.
    holders: Cell<usize>,
    sources_used: Cell<usize>,
    sample_claim: Rc<Cell<bool>>,
}

/// A connection's slot at the dispatcher; removed when dropped.
#[derive(Debug)]
pub(super) struct Slot {
    engine: Rc<Engine>,
    number: SlotId,
}

impl Engine {
    pub(super) fn new(
        share: Share,
        endpoints: Vec<Endpoint>,
        messages: Messages,
        recorder: Recorder,
    ) -> Self {
        let routes = Routes::new(&endpoints, share.index).through(share.paths.clone());
        Self {
            dispatcher: RefCell::new(Dispatcher::new(&share, routes)),
            outcomes: RefCell::new(Outcomes::new(recorder, share.sending_ends())),
            settled: Notify::new(),
            holders: Cell::new(0),
            sources_used: Cell::new(share.index as usize),
            sample_claim: Rc::default(),
            share,
            endpoints,
            messages,
        }
    }

    /// Returns the endpoint of a target, or of a turn among the paths of the only one.
    pub(super) fn endpoint(&self, number: usize) -> &Endpoint {
        match self.share.paths {
            Some(_) => &self.endpoints[0],
            None => &self.endpoints[number],
        }
    }

    pub(super) fn now(&self) -> u64 {
        self.share.clock.now()
    }

    /// Returns true if the last request ended and nothing more is sent.
    pub(super) fn is_settled(&self) -> bool {
        self.holders.get() == 0 && self.dispatcher.borrow().is_over()
    }

    /// Returns true if further attempts are pointless.
    pub(super) fn gives_up(&self) -> bool {
        self.outcomes.borrow().gives_up()
    }

    /// Returns the source address of the next connection.
    pub(super) fn next_source(&self) -> Option<IpAddr> {
        let sources = &self.share.plan.sources;
        let used = self.sources_used.get();
        self.sources_used.set(used.wrapping_add(1));
        sources.get(used.checked_rem(sources.len())?).copied()
    }

    /// Closed loop: begins all connections.
    pub(super) fn begin_all(self: &Rc<Self>) {
        for _ in 0..self.share.connections {
            self.holders.update(|holders| holders + 1);
            let engine = Rc::clone(self);
            spawn_local(async move {
                connection::hold_closed(&engine).await;
                engine.released();
            });
        }
    }

    /// Open loop: dispatches the requests that are due; returns the time of the next call, `None`
    /// when the schedule has ended.
    pub(super) fn dispatch(self: &Rc<Self>) -> Option<u64> {
        let now = self.now();
        let Dispatcher::Open(queue) = &mut *self.dispatcher.borrow_mut() else {
            return None;
        };
        self.outcomes.borrow_mut().due(queue.pacer.count_due(now));
        while let Some(ticket) = queue.dispatch(now) {
            self.holders.update(|holders| holders + 1);
            spawn_local(Rc::clone(self).hold_open(ticket));
        }
        queue.pacer.next_arrival(now)
    }

    /// Open loop: ends the schedule; requests that were not sent never will be.
    pub(super) fn abandon(&self) {
        if let Dispatcher::Open(queue) = &mut *self.dispatcher.borrow_mut() {
            let mut outcomes = self.outcomes.borrow_mut();
            queue.abandon(|time| outcomes.never_sent(time));
        }
        self.notify_if_settled();
    }

    async fn hold_open(self: Rc<Self>, ticket: Ticket) {
        connection::hold(&self, ticket).await;
        if let Dispatcher::Open(queue) = &mut *self.dispatcher.borrow_mut() {
            queue.vacate(ticket.due.target, self.now());
        }
        self.dispatch();
        self.released();
    }

    fn released(&self) {
        self.holders.update(|holders| holders - 1);
        self.notify_if_settled();
    }

    fn notify_if_settled(&self) {
        if self.is_settled() {
            self.settled.notify_one();
        }
    }

    /// Begins a request, by sending it or by connecting for it.
    pub(super) fn begin(&self, ticket: &Ticket) -> Exchange {
        let begun = self.now();
        self.outcomes.borrow_mut().begun(ticket, begun);
        Exchange {
            endpoint: ticket.due.target,
            intended: ticket.due.intended,
            begun,
            deadline: Instant::now() + self.share.plan.timeout.min(TIMEOUT_MAX),
            connect: None,
        }
    }

    /// Begins a sample of the stream's first response, if this is to be it.
    pub(super) fn sample(
        &self,
        head: impl FnOnce() -> Vec<u8>,
        tls: Option<&str>,
    ) -> Option<Sample> {
        if !self.outcomes.borrow().wants_first() {
            return None;
        }
        Sample::begin(&self.sample_claim, head(), tls.map(str::to_owned))
    }

    pub(super) fn responded(
        &self,
        exchange: &Exchange,
        received: &Received,
        first: Option<FirstResponse>,
    ) {
        let response = exchange.response(received);
        self.outcomes.borrow_mut().responded(&response, first);
    }

    pub(super) fn failed(&self, exchange: &Exchange, failure: Failure) {
        let now = self.now();
        self.outcomes.borrow_mut().failed(exchange, failure, now);
        self.notify_if_hopeless();
    }

    pub(super) fn not_connected(&self, exchange: &Exchange, failure: Failure) {
        let now = self.now();
        self.outcomes
            .borrow_mut()
            .not_connected(exchange, failure, now);
        self.notify_if_hopeless();
    }

    fn notify_if_hopeless(&self) {
        if self.gives_up() {
            self.settled.notify_one();
        }
    }
}

impl Slot {
    /// Adds a slot for a connection that serves this target and the others of its origin.
    pub(super) fn enter(engine: &Rc<Engine>, endpoint: usize) -> Self {
        let number = engine.dispatcher.borrow_mut().enter(endpoint);
        Self {
            engine: Rc::clone(engine),
            number,
        }
    }

    /// Polls the next request, when so many streams are free; `None` when the connection is to end.
    pub(super) fn poll_ticket(&self, context: &Context<'_>, free: usize) -> Poll<Option<Ticket>> {
        let now = self.engine.now();
        let mut dispatcher = self.engine.dispatcher.borrow_mut();
        dispatcher.poll_ticket(self.number, now, free, context.waker())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.engine.dispatcher.borrow_mut().leave(self.number);
    }
}
