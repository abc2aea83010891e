//! The scheduler: the lanes of waiting work, and the rule by which threads take from them.
//!
//! It does not know what the work is, and takes its locks from `super::sync`: so `tests/loom.rs`
//! compiles this same file against loom's locks and tries every interleaving.

use std::time::{Duration, Instant};

use super::lanes::{Band, Ended, Entry, LENGTHS, Lanes, Length, Spent, Taken};
use super::sync::{Condvar, Mutex, MutexGuard};
use super::thread_limit::clients_at_limit;
use crate::fair::Flow;

/// The time from which a run that was taken for short counts as long, if it computes.
const LONG_FROM: Duration = Duration::from_millis(10);

/// The part of `compute_max` up to which runs that were taken for short may compute beside long
/// ones: four times. As long as they do, work that is short has threads of its own all the same.
const LONG_RUNS_FACTOR: usize = 4;

/// The limits on a stage's threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Threads that stay when nothing is to be done.
    pub(crate) base: usize,
    /// Threads that may compute at a time, of each [`Length`].
    pub(crate) compute_max: usize,
    /// Threads in all, the blocked ones included.
    pub(crate) threads_max: usize,
}

/// The state by which new work is judged.
#[derive(Debug)]
pub(crate) struct View<'a, T> {
    pub(crate) lanes: &'a mut Lanes<T>,
    /// Work in the lanes, and admitted work that is not in its lane yet.
    pub(crate) waiting: usize,
    /// Threads at work, or announced for it.
    pub(crate) started: usize,
    /// Clients that are given no more threads for now.
    pub(crate) at_limit: &'a [u64],
}

/// A thread that is at work, as the controller sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtWork {
    pub(crate) worker: usize,
    pub(crate) thread: i32,
    pub(crate) run: u64,
    pub(crate) length: Length,
    pub(crate) is_blocked: bool,
}

/// The fate of pushed work.
#[derive(Debug)]
#[must_use]
pub(crate) enum Pushed<T> {
    /// All threads have left for good; the work is returned.
    Closed(T),
    /// It will be taken.
    Done,
    /// No thread comes for it, and the controller has not been notified yet.
    NotifyController,
}

/// The number of threads and runs in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) waiting: usize,
    /// Those by [`Length`] that may be given a thread, if there is one.
    pub(crate) waiting_of: [usize; LENGTHS.len()],
    pub(crate) threads: usize,
    /// Threads at work, or announced for it.
    pub(crate) started: usize,
    pub(crate) working: usize,
    pub(crate) blocked: usize,
}

#[derive(Debug, Default)]
struct Worker {
    thread: i32,
    run: u64,
    /// The length of its run, if it has one.
    working: Option<Length>,
    is_blocked: bool,
    run_of: Option<RunOf>,
}

/// The origin of a worker's run.
#[derive(Clone, Copy, Debug)]
struct RunOf {
    flow: Flow,
    since: Instant,
    /// It was taken for short, and is not.
    is_mistaken: bool,
}

/// The threads that are at work on runs of one length.
#[derive(Clone, Copy, Debug, Default)]
struct Gate {
    working: usize,
    blocked: usize,
    /// Threads that may start beyond `compute_max`, by the controller's last look.
    extra: usize,
}

#[derive(Debug)]
struct State<T> {
    lanes: Lanes<T>,
    workers: Vec<Option<Worker>>,
    reserved: usize,
    threads: usize,
    idle: usize,
    /// Idle threads that were woken for work and have not come for it yet.
    called: usize,
    /// Threads that were announced for work and have not come for it yet.
    created: usize,
    gates: [Gate; LENGTHS.len()],
    /// Runs at work that were taken for short, and are not.
    mistaken: usize,
    /// Clients that are given no more threads for now.
    at_limit: Vec<u64>,
    is_controller_notified: bool,
    is_closed: bool,
    /// The fewest idle threads since `idle_since`: these were not needed.
    idle_least: usize,
    idle_since: Instant,
    /// Idle threads that may leave.
    surplus: usize,
}

/// Work, the threads that wait for it, and the gate between them.
///
/// The gates: a thread takes work only while fewer than `compute_max` threads are at work on runs
/// of its length and not known to be blocked. So a thread that was blocked and returns does not
/// compute as one too many; and a short run need not wait until a long one has ended: the system,
/// which can interrupt the long one, shares the processors between them. A run that was taken for
/// short and computes for [`LONG_FROM`] leaves the short runs' gate for that of the long ones, and
/// waiting work of its route waits with long work from then on.
#[derive(Debug)]
pub(crate) struct Scheduler<T> {
    bounds: Bounds,
    state: Mutex<State<T>>,
    work: Condvar,
}

impl<T> Scheduler<T> {
    /// Creates a scheduler for work that may wait for `queue_wait_max`.
    pub(crate) fn new(bounds: Bounds, queue_wait_max: Duration) -> Self {
        let now = Instant::now();
        Self {
            bounds,
            state: Mutex::new(State {
                lanes: Lanes::new(queue_wait_max, now),
                workers: Vec::new(),
                reserved: 0,
                threads: 0,
                idle: 0,
                called: 0,
                created: 0,
                gates: [Gate::default(); LENGTHS.len()],
                mistaken: 0,
                at_limit: Vec::new(),
                is_controller_notified: false,
                is_closed: false,
                idle_least: 0,
                idle_since: now,
                surplus: 0,
            }),
            work: Condvar::new(),
        }
    }

    /// Reserves a place for new work, if `admit` allows it: the place counts from now on, and the
    /// work must be pushed.
    ///
    /// # Errors
    ///
    /// The error of `admit`.
    pub(crate) fn reserve<R, E>(
        &self,
        admit: impl FnOnce(&mut View<'_, T>) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut state = self.lock();
        let admitted = admit(&mut state.view())?;
        state.reserved += 1;
        Ok(admitted)
    }

    pub(crate) fn look<R>(&self, look: impl FnOnce(&mut View<'_, T>) -> R) -> R {
        look(&mut self.lock().view())
    }

    /// Adds work and wakes a thread for it.
    pub(crate) fn push(&self, mut entry: Entry, work: T) -> Pushed<T> {
        let mut state = self.lock();
        // Begun work reserved nothing.
        if !entry.is_begun {
            state.reserved -= 1;
        }
        if state.is_closed && state.threads == 0 {
            return Pushed::Closed(work);
        }
        // A thread that found so only when it comes would leave it to nobody: the controller is
        // notified here.
        let may_be_mistaken = entry.band == Band::Short && !entry.is_begun;
        if may_be_mistaken && state.is_mistaken(entry.flow.route) {
            entry.band = Band::Normal;
        }
        state.lanes.push(entry, work);
        let is_called = state.call_if_wanted(self.bounds);
        let must_notify =
            !state.is_controller_notified && !state.is_awaited(entry.band.length(), self.bounds);
        state.is_controller_notified |= must_notify;
        // Before the call, or the woken thread would find the lock taken.
        drop(state);
        if is_called {
            self.work.notify_one();
        }
        if must_notify {
            Pushed::NotifyController
        } else {
            Pushed::Done
        }
    }

    /// Announces a thread that is about to be started; `false` if there are enough.
    pub(crate) fn announce(&self) -> bool {
        let mut state = self.lock();
        let may_start = state.threads < self.bounds.threads_max && !state.is_closed;
        if may_start {
            state.threads += 1;
            state.created += 1;
        }
        may_start
    }

    /// Withdraws the announcement of a thread that could not be started.
    pub(crate) fn withdraw(&self) {
        let mut state = self.lock();
        state.threads -= 1;
        state.created -= 1;
    }

    /// Registers an announced thread, with its id in the system. Returns its number.
    pub(crate) fn enter(&self, thread: i32) -> usize {
        let mut state = self.lock();
        let worker = Worker {
            thread,
            ..Worker::default()
        };
        if let Some(free) = state.workers.iter().position(Option::is_none) {
            state.workers[free] = Some(worker);
            return free;
        }
        state.workers.push(Some(worker));
        state.workers.len() - 1
    }

    /// Ends this worker's run, which has used `spent`, and waits for more; `None` ends the thread.
    pub(crate) fn next(
        &self,
        worker: usize,
        spent: Option<Spent>,
        idle_timeout: Duration,
    ) -> Option<Taken<T>> {
        let mut state = self.lock();
        state.end_run(worker, self.bounds);
        if let Some(spent) = spent {
            state.lanes.settle(&spent, Instant::now());
        }
        state.review(self.bounds, idle_timeout);
        loop {
            if let Some(taken) = state.take(worker, self.bounds) {
                let is_called = state.call_if_wanted(self.bounds);
                drop(state);
                if is_called {
                    self.work.notify_one();
                }
                return Some(taken);
            }
            // The thread that holds the gate shut takes the rest when its run has ended.
            if state.is_closed || state.is_superfluous(self.bounds) {
                state.leave(worker);
                return None;
            }
            state.idle += 1;
            // One that stays has nothing to look for when the time is over.
            let stays = state.threads <= self.bounds.base;
            let timeout = if stays { Duration::MAX } else { idle_timeout };
            let is_wanted;
            (state, is_wanted) = self.wait(state, timeout);
            if !is_wanted && state.threads > self.bounds.base {
                state.leave(worker);
                return None;
            }
        }
    }

    /// Waits as an idle thread until it is wanted, or until this time has passed.
    fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, State<T>>,
        time: Duration,
    ) -> (MutexGuard<'a, State<T>>, bool) {
        while state.called == 0 && !state.is_closed {
            let (woken, timeout) = self
                .work
                .wait_timeout(state, time)
                .expect("no panic happens under this lock");
            state = woken;
            if timeout.timed_out() && state.called == 0 {
                break;
            }
        }
        let is_wanted = state.called > 0;
        if is_wanted {
            state.called -= 1;
        } else {
            state.idle -= 1;
            state.idle_least = state.idle_least.min(state.idle);
        }
        let must_look = is_wanted || state.is_closed;
        (state, must_look)
    }

    pub(crate) fn counts(&self) -> Counts {
        self.lock().counts()
    }

    /// Returns the threads at work, those first that were last seen computing, and the counts. If
    /// nothing waits, the controller will be notified when something does again.
    pub(crate) fn inspect(&self) -> (Counts, Vec<AtWork>) {
        let mut state = self.lock();
        if state.lanes.is_empty() {
            state.is_controller_notified = false;
            state.gates.iter_mut().for_each(|gate| gate.extra = 0);
        }
        let mut at_work: Vec<_> = state.at_work().collect();
        at_work.sort_by_key(|worker| worker.is_blocked);
        (state.counts(), at_work)
    }

    /// Takes what the controller saw at `now`, and lets `start` threads of each length begin.
    /// Returns how many of these have yet to be created, each already announced.
    pub(crate) fn apply(
        &self,
        seen: &[AtWork],
        mut start: [usize; LENGTHS.len()],
        now: Instant,
    ) -> usize {
        let mut state = self.lock();
        for worker in seen {
            state.mark(*worker);
        }
        start[Length::Short as usize] += state.note_mistaken(self.bounds, now);
        let mut wanted = 0;
        for length in LENGTHS {
            let start = start[length as usize].min(state.waiting_of(length));
            // `room` counts `extra`, which is still that of the last look.
            state.gates[length as usize].extra = 0;
            let room = state.room(length, self.bounds);
            state.gates[length as usize].extra = start.saturating_sub(room);
            wanted += start;
        }
        let missing = wanted.saturating_sub(state.coming());
        let woken = missing.min(state.idle);
        state.call_idle(woken);
        let created = (missing - woken).min(self.bounds.threads_max - state.threads);
        state.threads += created;
        state.created += created;
        drop(state);
        for _ in 0..woken {
            self.work.notify_one();
        }
        created
    }

    /// Takes out the work for which `is_out` holds.
    pub(crate) fn take_out(&self, is_out: impl FnMut(&T) -> bool) -> Vec<T> {
        self.lock().lanes.take_out(is_out)
    }

    /// Moves begun work forward for which `has_left` holds.
    pub(crate) fn bring_forward(&self, has_left: impl FnMut(&T) -> bool) {
        self.lock().lanes.bring_forward(has_left);
    }

    /// Takes into account the time that was used by a run that was given up.
    pub(crate) fn learn_at_least(&self, route: u64, run: Ended) {
        self.lock().lanes.learn_at_least(route, run);
    }

    /// Lets all threads end once the lanes are empty.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.work.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().expect("no panic happens under this lock")
    }
}

impl<T> State<T> {
    fn coming(&self) -> usize {
        self.called + self.created
    }

    fn started(&self) -> usize {
        self.working() + self.coming()
    }

    fn working(&self) -> usize {
        self.gates.iter().map(|gate| gate.working).sum()
    }

    fn view(&mut self) -> View<'_, T> {
        View {
            waiting: self.lanes.len() + self.reserved,
            started: self.started(),
            lanes: &mut self.lanes,
            at_limit: &self.at_limit,
        }
    }

    fn counts(&self) -> Counts {
        Counts {
            waiting: self.lanes.len(),
            waiting_of: LENGTHS.map(|length| self.waiting_of(length)),
            threads: self.threads,
            started: self.started(),
            working: self.working(),
            blocked: self.gates.iter().map(|gate| gate.blocked).sum(),
        }
    }

    /// Returns how much work of this length waits whose client may be given a thread.
    fn waiting_of(&self, length: Length) -> usize {
        self.lanes.len_without(length, &self.at_limit)
    }

    /// Returns how many more threads may take runs of this length.
    fn room(&self, length: Length, bounds: Bounds) -> usize {
        let gate = &self.gates[length as usize];
        let computing = gate.working - gate.blocked;
        gate.extra + bounds.compute_max.saturating_sub(computing)
    }

    /// Returns how many threads would find work that they may take.
    fn wanted(&self, bounds: Bounds) -> usize {
        let wanted = |length| self.waiting_of(length).min(self.room(length, bounds));
        LENGTHS.map(wanted).iter().sum()
    }

    fn call_if_wanted(&mut self, bounds: Bounds) -> bool {
        let is_called = self.idle > 0 && self.coming() < self.wanted(bounds);
        if is_called {
            self.call_idle(1);
        }
        is_called
    }

    /// True if a thread comes for each waiting run of this length.
    fn is_awaited(&self, length: Length, bounds: Bounds) -> bool {
        let waiting = self.lanes.len_of(length);
        waiting == self.waiting_of(length)
            && waiting <= self.room(length, bounds)
            && self.wanted(bounds) <= self.coming()
    }

    fn call_idle(&mut self, threads: usize) {
        self.idle -= threads;
        self.called += threads;
        self.idle_least = self.idle_least.min(self.idle);
    }

    /// Once in each `idle_timeout`, finds out how many threads were idle all that time. Light work
    /// goes round all idle threads, so each by itself seems to be needed.
    fn review(&mut self, bounds: Bounds, idle_timeout: Duration) {
        if self.idle_since.elapsed() < idle_timeout {
            return;
        }
        self.surplus = self
            .idle_least
            .min(self.threads.saturating_sub(bounds.base));
        self.idle_least = self.idle;
        self.idle_since = Instant::now();
    }

    /// True if a thread that has nothing to do may leave.
    fn is_superfluous(&mut self, bounds: Bounds) -> bool {
        let may_leave = self.surplus > 0 && self.threads > bounds.base;
        self.surplus -= usize::from(may_leave);
        may_leave
    }

    fn take(&mut self, worker: usize, bounds: Bounds) -> Option<Taken<T>> {
        let now = Instant::now();
        let taken = self.pop(bounds, now)?;
        let length = taken.band.length();
        let gate = &mut self.gates[length as usize];
        let is_extra = gate.working - gate.blocked >= bounds.compute_max;
        gate.extra -= usize::from(is_extra);
        gate.working += 1;
        let worker = self.workers[worker].as_mut().expect("it has entered");
        worker.working = Some(length);
        worker.run += 1;
        worker.run_of = Some(RunOf {
            flow: taken.turn.flow,
            since: now,
            is_mistaken: false,
        });
        self.note_limit(bounds);
        Some(taken)
    }

    /// Takes the work whose turn it is; what is of a route that is mistaken for short goes back.
    fn pop(&mut self, bounds: Bounds, now: Instant) -> Option<Taken<T>> {
        let room = LENGTHS.map(|length| self.room(length, bounds));
        let may_take = |length: Length| room[length as usize] > 0;
        loop {
            let taken = self.lanes.pop(may_take, &self.at_limit, now)?;
            // Short work that somebody has called critical stays before all other.
            let may_go_back = taken.band == Band::Short && !taken.is_begun;
            if !may_go_back || !self.is_mistaken(taken.turn.flow.route) {
                return Some(taken);
            }
            self.lanes.demote(taken, now);
        }
    }

    fn is_mistaken(&self, route: u64) -> bool {
        let is_of_route = |run: RunOf| run.is_mistaken && run.flow.route == route;
        self.mistaken > 0
            && self
                .workers
                .iter()
                .flatten()
                .any(|worker| worker.run_of.is_some_and(is_of_route))
    }

    /// Moves the runs that were taken for short, and have computed for long, to the gate of long
    /// runs. Returns their number.
    fn note_mistaken(&mut self, bounds: Bounds, now: Instant) -> usize {
        let mut noted = 0;
        for worker in self.workers.iter_mut().flatten() {
            let [short, long] = &mut self.gates;
            let is_full = long.working - long.blocked >= bounds.compute_max * LONG_RUNS_FACTOR;
            let is_short = worker.working == Some(Length::Short) && !worker.is_blocked;
            let Some(run) = worker.run_of.as_mut().filter(|_| is_short && !is_full) else {
                continue;
            };
            if now.saturating_duration_since(run.since) < LONG_FROM {
                continue;
            }
            run.is_mistaken = true;
            worker.working = Some(Length::Long);
            short.working -= 1;
            long.working += 1;
            noted += 1;
        }
        self.mistaken += noted;
        noted
    }

    /// Ends the worker's run; or, before its first one, counts it as arrived.
    fn end_run(&mut self, worker: usize, bounds: Bounds) {
        let worker = self.workers[worker].as_mut().expect("it has entered");
        let Some(length) = worker.working.take() else {
            self.created -= 1;
            return;
        };
        let gate = &mut self.gates[length as usize];
        gate.working -= 1;
        gate.blocked -= usize::from(worker.is_blocked);
        worker.is_blocked = false;
        let run = worker.run_of.take();
        self.mistaken -= usize::from(run.is_some_and(|run| run.is_mistaken));
        self.note_limit(bounds);
    }

    /// Finds the clients that are given no more threads, after a run has begun or ended.
    fn note_limit(&mut self, bounds: Bounds) {
        let runs = self.workers.iter().flatten();
        let clients = runs.filter_map(|worker| Some(worker.run_of?.flow.client));
        self.at_limit = clients_at_limit(clients, self.working(), bounds);
    }

    fn leave(&mut self, worker: usize) {
        self.workers[worker] = None;
        self.threads -= 1;
    }

    fn at_work(&self) -> impl Iterator<Item = AtWork> {
        let workers = self.workers.iter().enumerate();
        workers.filter_map(|(index, worker)| {
            let worker = worker.as_ref()?;
            Some(AtWork {
                worker: index,
                thread: worker.thread,
                run: worker.run,
                length: worker.working?,
                is_blocked: worker.is_blocked,
            })
        })
    }

    /// Marks a worker as blocked or not, if it is still at the same run.
    fn mark(&mut self, seen: AtWork) {
        let worker = self.workers.get_mut(seen.worker).and_then(Option::as_mut);
        let Some(worker) = worker.filter(|worker| worker.run == seen.run) else {
            return;
        };
        let Some(length) = worker.working else {
            return;
        };
        let gate = &mut self.gates[length as usize];
        match (worker.is_blocked, seen.is_blocked) {
            (false, true) => gate.blocked += 1,
            (true, false) => gate.blocked -= 1,
            _ => {}
        }
        worker.is_blocked = seen.is_blocked;
    }
}
