use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use greenroom_quantiles::micros;
use greenroom_stage::admission::{
    BURST_FACTOR, Lateness, RETRY_AFTER_MAX, ServiceTime, Standing, admit, retry_after,
};
use greenroom_stage::fair::{FairQueue, Flow, HALF_LIFE, Shares, Usage};
use greenroom_stage::{Client, Reason, Rejected, Sheds};

use super::accounts::{Accounts, WorkerLoad};
use super::charge::{Charge, Given, Origin, RunEnd};
use super::phase::Settlement;
use super::queue::{Turn, Turns, Waiter};
use super::rejections::{self, Rejections, Unlogged};
use super::routes::{Route, Routes};
use super::shares::Share;
use super::status::QueueStatus;
use super::worker::{Ending, Worker};
use crate::settings::Settings;

/// The number of ended workers that are remembered with their ending.
const GONE_MAX: usize = 64;

/// The number of requests that must have left the queue before their places are taken away. Up to
/// half of the places may be theirs.
const LEFT_MIN: usize = 32;

/// The smallest refund that moves a waiting client in the queue; a smaller one changes the order
/// too little.
const REFUND_SEEN: Duration = Duration::from_millis(1);

/// The record of a worker that is gone.
#[derive(Clone, Copy, Debug)]
struct Gone {
    key: u32,
    ending: Ending,
    released: u64,
}

/// The state that the pool's lock guards.
#[derive(Debug)]
pub(super) struct State {
    accounts: Vec<Accounts>,
    gone: VecDeque<Gone>,
    queue: FairQueue<Arc<Waiter>>,
    /// The ones in the queue that wait no more.
    left: usize,
    usage: Usage,
    shares: Shares<Client>,
    standing: Standing,
    concurrency: u32,
    queue_max: usize,
    queue_wait_max: Duration,
    served_max: u64,
    routes: Routes,
    service: ServiceTime,
    lateness: Lateness,
    sheds: Sheds,
    unlogged: Unlogged,
}

impl State {
    pub(super) fn new(settings: &Settings, now: Instant) -> Self {
        Self {
            accounts: Vec::new(),
            gone: VecDeque::new(),
            queue: FairQueue::default(),
            left: 0,
            usage: Usage::new(now),
            shares: Shares::default(),
            standing: Standing::new(settings.limits.queue_wait_max),
            concurrency: settings.concurrency.requests_max(),
            queue_max: settings.limits.queue_max,
            queue_wait_max: settings.limits.queue_wait_max,
            served_max: settings.limits.max_requests,
            routes: Routes::default(),
            service: ServiceTime::default(),
            lateness: Lateness::default(),
            sheds: Sheds::default(),
            unlogged: Unlogged::default(),
        }
    }

    pub(super) fn queue_is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Takes a run, if a worker has a free slot.
    pub(super) fn take_run(&mut self, origin: Origin, now: Instant) -> Option<Given> {
        let index = self.free_worker(origin.route, now)?;
        Some(self.give_run(index, origin, self.flow(origin), now))
    }

    /// Returns the worker that has the fewest runs. A run that may be long gets a worker for
    /// itself.
    fn free_worker(&self, route: Route, now: Instant) -> Option<usize> {
        let blocking = self.routes.depth(route, false);
        let event_driven = self.routes.depth(route, true);
        let has_capacity = |accounts: &Accounts| {
            let is_event_driven = accounts.worker.is_event_driven;
            let depth = if is_event_driven {
                event_driven
            } else {
                blocking
            };
            accounts.has_capacity(depth, self.concurrency, now)
        };
        let free = self.accounts.iter().enumerate();
        let free = free.filter(|(_, accounts)| has_capacity(accounts));
        let fewest = free.min_by_key(|(_, accounts)| (accounts.running(), accounts.waiting()));
        fewest.map(|(index, _)| index)
    }

    fn give_run(&mut self, index: usize, origin: Origin, flow: Flow, now: Instant) -> Given {
        let charge = Charge {
            route: origin.route,
            flow,
            expected: self.expected(origin.route),
            since: now,
        };
        self.usage.charge(flow, charge.expected, now);
        self.shares.row(flow, origin.client, now);
        let accounts = &mut self.accounts[index];
        let depth = self
            .routes
            .depth(origin.route, accounts.worker.is_event_driven);
        Given {
            charge,
            behind: accounts.begin(depth == 1, charge.expected, now),
            worker: Arc::clone(&accounts.worker),
        }
    }

    fn flow(&self, origin: Origin) -> Flow {
        Flow {
            route: self.routes.account(origin.route),
            client: origin.client.key(),
        }
    }

    fn expected(&self, route: Route) -> Duration {
        self.usage.expected(self.routes.account(route))
    }

    pub(super) fn enter_queue(
        &mut self,
        origin: Origin,
        now: Instant,
    ) -> Result<Arc<Waiter>, Rejected> {
        let flow = self.flow(origin);
        if !self.has_place(flow) {
            self.sweep();
        }
        let predicted = self.predicted_wait(flow, now);
        if !self.has_place(flow) {
            return Err(self.reject(Reason::QueueFull, origin, predicted, now));
        }
        let wait_max = self.standing.wait_max(now, predicted);
        if admit(predicted, Some(wait_max)).is_err() {
            return Err(self.reject(Reason::Wait, origin, predicted, now));
        }
        let waiter = Arc::new(Waiter {
            origin,
            since: now,
            predicted,
            patience: self.patience(wait_max),
            turn: Turn::ToCome(None).into(),
        });
        let expected = self.expected(origin.route);
        let queued = Arc::clone(&waiter);
        self.queue.push(flow, expected, queued, &self.usage);
        Ok(waiter)
    }

    /// Returns `true` if this flow leaves at least as many places free as it has taken. So one flow
    /// fills half of the queue, and two fill a third each: there is always a place for one that has
    /// none.
    fn has_place(&self, flow: Flow) -> bool {
        let free = self.queue_max.saturating_sub(self.queue.len());
        self.queue.len_of(flow) < free
    }

    /// Returns the time that a request waits that was admitted because it would wait for no more
    /// than `wait_max`. In a burst much is new, so predictions err by more.
    fn patience(&self, wait_max: Duration) -> Duration {
        if wait_max > self.queue_wait_max {
            wait_max.saturating_mul(BURST_FACTOR)
        } else {
            wait_max
        }
    }

    /// Notes that a request in the queue waits no more. Places are taken from many at once, because
    /// that costs a scan of the queue.
    pub(super) fn note_left(&mut self) {
        self.left += 1;
        if self.left >= LEFT_MIN && self.left > self.queue.len() / 2 {
            self.sweep();
        }
    }

    fn sweep(&mut self) {
        if self.left > 0 {
            self.queue.take_out(|waiter| waiter.is_over());
            self.left = 0;
        }
    }

    /// Gives the free runs to the clients and routes that have used least.
    ///
    /// It stops at the first request that gets none, although one behind it might: of a route that
    /// has proven short, which may be sent behind others to a worker that is not idle. If such went
    /// first, workers would never be idle, and a route that needs one for itself would have no turn
    /// at all. To stop costs little: the first gets the first worker that becomes idle, so those
    /// behind it wait for the runs sent ahead to that worker, 6.4 ms at most, or for the shortest
    /// of the runs that may be long, behind which nothing is sent anyway. And it cannot hold the
    /// place for ever: its flow has used least, it is charged as it gets its run, and if a request
    /// comes meanwhile whose flow has used less, that one is first. A bound that keeps all workers
    /// from taking anything, such as that of requests that wait for events, keeps all requests
    /// waiting alike.
    pub(super) fn serve_queue(&mut self, now: Instant) -> Turns {
        let mut turns = Turns::default();
        while let Some((flow, waiter)) = self.queue.peek(&self.usage) {
            let waiter = Arc::clone(waiter);
            let wait = now.saturating_duration_since(waiter.since);
            let patience = waiter.patience;
            if waiter.is_over() {
                self.queue.pop(&self.usage);
                self.left = self.left.saturating_sub(1);
            } else if !self.lateness.is_worth_running(now, wait, patience) {
                self.queue.pop(&self.usage);
                let rejected = self.too_late(&waiter, now);
                turns.add(waiter.reject(rejected));
            } else if let Some(index) = self.free_worker(waiter.origin.route, now) {
                // Before the run is charged, or another would be first.
                self.queue.pop(&self.usage);
                let given = self.give_run(index, waiter.origin, flow, now);
                turns.add(waiter.call(given));
            } else {
                break;
            }
        }
        turns
    }

    /// Counts a request whose turn came too late, or not at all, and returns its rejection.
    pub(super) fn too_late(&mut self, waiter: &Waiter, now: Instant) -> Rejected {
        self.reject(Reason::Late, waiter.origin, self.queue_wait_max, now)
    }

    /// Corrects the charge of a run that ended.
    fn correct(&mut self, charge: &Charge, end: RunEnd, now: Instant) {
        let used = match end {
            // It lasts as long as its client stays, and that time would be held against all
            // others that want to leave HTTP.
            RunEnd::Released(busy) if charge.route == Route::LEAVING => busy.min(HALF_LIFE),
            RunEnd::Released(busy) => busy,
            RunEnd::Lost { has_begun: true } => now.saturating_duration_since(charge.since),
            RunEnd::Lost { has_begun: false } | RunEnd::Unused => Duration::ZERO,
        };
        let flow = charge.flow;
        self.usage.refund(flow, charge.expected, charge.since);
        self.usage.charge(flow, used, now);
        if let Some(row) = self.shares.known(flow) {
            row.add_used(used, now);
        }
        if charge.expected.saturating_sub(used) >= REFUND_SEEN {
            self.queue.refunded(flow.client, &self.usage);
        }
    }

    fn learn(&mut self, route: Route, busy: Duration) {
        let account = self.routes.record(route, busy);
        if let Some(account) = account {
            self.service.record(busy);
            self.usage.learn(account, busy);
        }
    }

    /// Applies a settlement; returns `true` if the supervisor should look at the worker.
    pub(super) fn settle(&mut self, key: u32, settlement: &mut Settlement, now: Instant) -> bool {
        for (charge, end) in &settlement.ended {
            self.correct(charge, *end, now);
            if let RunEnd::Released(busy) = end {
                self.learn(charge.route, *busy);
            }
        }
        let served_max = self.served_max;
        let Some(accounts) = self.accounts_of(key) else {
            settlement.clear();
            return false;
        };
        let was_spent = accounts.served() >= served_max;
        accounts.settle(settlement, now);
        let is_spent = accounts.served() >= served_max;
        (is_spent && !was_spent) || (accounts.draining && accounts.is_idle())
    }

    pub(super) fn has_idle_besides(&self, key: u32, now: Instant) -> bool {
        let mut others = self
            .accounts
            .iter()
            .filter(|accounts| accounts.worker.key != key);
        others.any(|accounts| {
            accounts.running() == 0 && accounts.has_capacity(1, self.concurrency, now)
        })
    }

    /// Returns the number of runs that the worker has released.
    pub(super) fn released(&self, key: u32) -> Option<u64> {
        let accounts = self
            .accounts
            .iter()
            .find(|accounts| accounts.worker.key == key);
        let found = accounts.map(|accounts| accounts.released);
        found.or_else(|| self.gone(key).map(|gone| gone.released))
    }

    pub(super) fn condemn(&mut self, key: u32) {
        if let Some(accounts) = self.accounts_of(key) {
            accounts.condemned = true;
        }
    }

    pub(super) fn note_lost(&mut self, key: u32, now: Instant) {
        if let Some(accounts) = self.accounts_of(key) {
            accounts.lost.get_or_insert(now);
        }
    }

    /// See [`Unlogged::take`].
    pub(super) fn take_rejections(&mut self, now: Instant) -> Option<Rejections> {
        self.unlogged.take(now)
    }

    pub(super) fn add(&mut self, worker: Arc<Worker>, now: Instant) {
        self.accounts.push(Accounts::new(worker, now));
    }

    pub(super) fn drain(&mut self, key: u32) {
        if let Some(accounts) = self.accounts_of(key) {
            accounts.draining = true;
        }
    }

    pub(super) fn note_ending(&mut self, key: u32, ending: Ending) {
        if let Some(accounts) = self.accounts_of(key) {
            accounts.ending = ending;
            accounts.condemned = true;
        }
    }

    pub(super) fn remove(&mut self, key: u32) {
        let Some(index) = self
            .accounts
            .iter()
            .position(|accounts| accounts.worker.key == key)
        else {
            return;
        };
        let accounts = self.accounts.remove(index);
        accounts.worker.note_gone();
        self.gone.push_back(Gone {
            key,
            ending: accounts.ending,
            released: accounts.released,
        });
        if self.gone.len() > GONE_MAX {
            self.gone.pop_front();
        }
    }

    pub(super) fn ending(&self, key: u32) -> Ending {
        let found = self
            .accounts
            .iter()
            .find(|accounts| accounts.worker.key == key);
        let found = found.map(|accounts| accounts.ending);
        found
            .or_else(|| self.gone(key).map(|gone| gone.ending))
            .unwrap_or_default()
    }

    fn gone(&self, key: u32) -> Option<&Gone> {
        self.gone.iter().find(|gone| gone.key == key)
    }

    pub(super) fn loads(&self, now: Instant) -> Vec<WorkerLoad> {
        self.accounts
            .iter()
            .map(|accounts| accounts.look(now))
            .collect()
    }

    pub(super) fn status(&self, now: Instant) -> QueueStatus {
        let unknown = Origin {
            route: Route::default(),
            client: Client::UNKNOWN,
        };
        let predicted = self.predicted_wait(self.flow(unknown), now);
        QueueStatus {
            queue_len: self.queue.len() - self.left,
            queue_max: self.queue_max,
            queue_wait_max_micros: micros(self.queue_wait_max),
            predicted_wait_micros: micros(predicted),
            backlog_micros: micros(self.queue.backlog()),
            is_standing: self.standing.is_standing(),
            short_routes: self.routes.short(),
            busy_mean_micros: micros(self.service.mean()),
            sheds: self.sheds,
            shares: self.shares(now),
        }
    }

    fn shares(&self, now: Instant) -> Vec<Share> {
        let shown = self.shares.shown(now);
        let shares = shown
            .iter()
            .map(|shown| Share::of(shown, self.queue.len_of(shown.flow)));
        shares.collect()
    }

    fn accounts_of(&mut self, key: u32) -> Option<&mut Accounts> {
        self.accounts
            .iter_mut()
            .find(|accounts| accounts.worker.key == key)
    }

    /// Predicts the wait of a request of this flow: until a worker is free, then for its share of
    /// the work before it. If the oldest of its flow has waited for longer than was predicted, so
    /// will it.
    fn predicted_wait(&self, flow: Flow, now: Instant) -> Duration {
        let serving = || self.accounts.iter().filter(|accounts| accounts.serves());
        let workers = u32::try_from(serving().count().max(1)).unwrap_or(u32::MAX);
        let free_in = serving().map(|accounts| accounts.free_in(now)).min();
        let enough = self.queue_wait_max.saturating_mul(BURST_FACTOR);
        let enough = enough.saturating_add(RETRY_AFTER_MAX);
        let enough = enough.saturating_mul(workers);
        let ahead = self.queue.ahead(flow, &self.usage, enough, now) / workers;
        let late = self.queue.oldest(flow).map(|oldest| {
            let waited = now.saturating_duration_since(oldest.since);
            waited.saturating_sub(oldest.predicted)
        });
        let wait = free_in.unwrap_or_default().saturating_add(ahead);
        wait.saturating_add(late.unwrap_or_default())
    }

    fn reject(
        &mut self,
        reason: Reason,
        origin: Origin,
        predicted: Duration,
        now: Instant,
    ) -> Rejected {
        rejections::count(&mut self.sheds, reason);
        self.unlogged.add(reason, predicted);
        let (flow, expected) = (self.flow(origin), self.expected(origin.route));
        self.shares
            .row(flow, origin.client, now)
            .add_rejected(expected, now);
        Rejected {
            reason,
            retry_after: retry_after(predicted, self.queue_wait_max),
        }
    }
}
