//! Clients and workers on a clock that the test sets.

use std::task::{Context, Poll, Waker};
use std::time::Instant;

use super::*;

/// A pool whose workers take as long for each request as the request says.
pub(super) struct Simulation {
    pub(super) pool: Arc<Pool>,
    began: Instant,
    busy: Vec<Busy>,
    waiting: Vec<(Asked, Ticket)>,
    /// The requests that were begun, in order.
    pub(super) begun: Vec<Asked>,
    pub(super) refused: Vec<(Asked, Rejected)>,
}

/// A request, and the time that it takes in its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) client: Client,
    pub(super) path: &'static str,
    pub(super) takes: Duration,
}

struct Busy {
    until: Instant,
    run: (u32, Charge),
    takes: Duration,
}

impl Simulation {
    pub(super) fn new(workers: u32, change: impl FnOnce(Builder) -> Builder) -> Self {
        Self {
            pool: with_workers(0..workers, change),
            began: now(),
            busy: Vec::new(),
            waiting: Vec::new(),
            begun: Vec::new(),
            refused: Vec::new(),
        }
    }

    pub(super) fn ask(&mut self, asked: Asked) {
        let route = Route::of(&http::Method::GET, asked.path);
        let client = asked.client;
        match self.pool.acquire(Origin { route, client }) {
            Admission::Run(run) => self.begin(asked, run),
            Admission::Wait(ticket) => {
                self.waiting.push((asked, ticket));
                self.take_turns();
            }
            Admission::Rejected(rejected) => self.refused.push((asked, rejected)),
        }
    }

    /// Ends the next run; returns `false` if there was none.
    pub(super) async fn step(&mut self) -> bool {
        let busy = self.busy.iter().enumerate();
        let Some((next, _)) = busy.min_by_key(|(_, busy)| busy.until) else {
            return false;
        };
        let busy = self.busy.remove(next);
        let rest = busy.until.saturating_duration_since(now());
        tokio::time::advance(rest).await;
        let (key, charge) = busy.run;
        let (mut settlement, mut phase) = (Settlement::default(), Phase::Running);
        let end = RunEnd::Released(busy.takes);
        settlement.end_run(&mut phase, Phase::Served, charge, end);
        self.pool.settle(key, &mut settlement);
        self.take_turns();
        true
    }

    /// Steps until all that runs and waits has ended.
    pub(super) async fn drain(&mut self) {
        while self.step().await {}
        assert_eq!(self.waiting.len(), 0, "somebody waits and nobody works");
    }

    /// Drops all requests of this client from the queue.
    pub(super) fn leave(&mut self, client: Client) {
        self.waiting.retain(|(asked, _)| asked.client != client);
    }

    pub(super) fn elapsed(&self) -> Duration {
        now().saturating_duration_since(self.began)
    }

    pub(super) fn count_waiting(&self, client: Client) -> usize {
        let waiting = self.waiting.iter();
        waiting.filter(|(asked, _)| asked.client == client).count()
    }

    pub(super) fn is_refused(&self, client: Client) -> bool {
        let mut refused = self.refused.iter();
        refused.any(|(asked, _)| asked.client == client)
    }

    fn begin(&mut self, asked: Asked, run: Run) {
        self.begun.push(asked);
        self.busy.push(Busy {
            until: now() + asked.takes,
            run: (run.worker().key, run.charge()),
            takes: asked.takes,
        });
        run.sent();
    }

    fn take_turns(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        let waiting = std::mem::take(&mut self.waiting);
        for (asked, mut ticket) in waiting {
            match std::pin::Pin::new(&mut ticket).poll(&mut cx) {
                Poll::Pending => self.waiting.push((asked, ticket)),
                Poll::Ready(Ok(run)) => self.begin(asked, run),
                Poll::Ready(Err(rejected)) => self.refused.push((asked, rejected)),
            }
        }
    }
}
