//! Where work meets threads: three lanes, and the rule who may take from them.
//!
//! It knows not what the work is, and takes its locks from `super::sync`:
//! so `tests/loom.rs` compiles this same file against loom's locks and tries every interleaving.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::sync::{Condvar, Mutex, MutexGuard};

/// In which order work is taken: what was begun is finished first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Begun before; its wait is over.
    Resumed,
    /// New, and before the rest: more important, or short by all that is known.
    Ahead,
    /// New.
    Fresh,
}

const LANES: usize = 3;

/// Every eighth time it is the turn of the fresh lane, if anything waits there: it must not stand
/// still, however much goes before it.
const FRESH_EVERY: u64 = 8;

/// How many threads there may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Threads that stay when nothing is to be done.
    pub(crate) base: usize,
    /// Threads that may compute at a time.
    pub(crate) compute_max: usize,
    /// Threads in all, the blocked ones included.
    pub(crate) threads_max: usize,
}

/// What a newcomer sees.
#[derive(Debug)]
pub(crate) struct View<'a, T> {
    /// Work in the lanes, and work that was let in and is not in its lane yet.
    pub(crate) waiting: usize,
    /// Of it, work in the lanes before the fresh one.
    pub(crate) ahead: usize,
    /// Threads at work, or on their way to it.
    pub(crate) started: usize,
    /// The fresh work whose turn is next.
    pub(crate) head: Option<&'a T>,
}

/// A thread that is at work, as the controller sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtWork {
    pub(crate) worker: usize,
    pub(crate) thread: i32,
    pub(crate) run: u64,
    pub(crate) is_blocked: bool,
}

/// What became of pushed work.
#[derive(Debug)]
#[must_use]
pub(crate) enum Pushed<T> {
    /// All threads have left for good; here it is back.
    Closed(T),
    /// It will be taken.
    Done,
    /// No thread comes for it, and the controller does not know yet.
    TellController,
}

/// How many threads do what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) waiting: usize,
    pub(crate) threads: usize,
    /// Threads at work, or on their way to it.
    pub(crate) started: usize,
    pub(crate) working: usize,
    pub(crate) blocked: usize,
}

#[derive(Debug, Default)]
struct Worker {
    thread: i32,
    run: u64,
    is_working: bool,
    is_blocked: bool,
}

#[derive(Debug)]
struct State<T> {
    lanes: [VecDeque<T>; LANES],
    workers: Vec<Option<Worker>>,
    reserved: usize,
    threads: usize,
    idle: usize,
    /// Idle threads that were woken for work and have not come for it yet.
    called: usize,
    /// Threads that were announced for work and have not come for it yet.
    created: usize,
    working: usize,
    blocked: usize,
    /// Threads that may start beyond `compute_max`, by grace of the controller's last look.
    extra: usize,
    is_controller_told: bool,
    is_closed: bool,
    taken: u64,
    /// The fewest idle threads since `idle_since`: so many were not needed.
    idle_least: usize,
    idle_since: Instant,
    /// Idle threads that may leave.
    surplus: usize,
}

/// Work, the threads that wait for it, and the gate between them.
///
/// The gate: a thread takes work only while fewer than `compute_max` threads are at work and not
/// known to be blocked. So a thread that was blocked and returns does not compute as one too many.
#[derive(Debug)]
pub(crate) struct HandOff<T> {
    bounds: Bounds,
    state: Mutex<State<T>>,
    work: Condvar,
}

impl<T> HandOff<T> {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            state: Mutex::new(State {
                lanes: std::array::from_fn(|_| VecDeque::new()),
                workers: Vec::new(),
                reserved: 0,
                threads: 0,
                idle: 0,
                called: 0,
                created: 0,
                working: 0,
                blocked: 0,
                extra: 0,
                is_controller_told: false,
                is_closed: false,
                taken: 0,
                idle_least: 0,
                idle_since: Instant::now(),
                surplus: 0,
            }),
            work: Condvar::new(),
        }
    }

    /// Lets a newcomer in, if `admit` says so: its place counts from now on, and it must be pushed.
    ///
    /// # Errors
    ///
    /// What `admit` said.
    pub(crate) fn reserve<E>(
        &self,
        admit: impl FnOnce(&View<'_, T>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut state = self.lock();
        admit(&state.view())?;
        state.reserved += 1;
        Ok(())
    }

    pub(crate) fn look<R>(&self, look: impl FnOnce(&View<'_, T>) -> R) -> R {
        look(&self.lock().view())
    }

    /// Adds work and wakes a thread for it.
    pub(crate) fn push(&self, lane: Lane, work: T) -> Pushed<T> {
        let mut state = self.lock();
        if lane != Lane::Resumed {
            state.reserved -= 1;
        }
        if state.is_closed && state.threads == 0 {
            return Pushed::Closed(work);
        }
        state.lanes[lane as usize].push_back(work);
        let is_awaited = state.wake_if_open(self.bounds);
        let must_tell = !is_awaited && !state.is_controller_told;
        state.is_controller_told |= must_tell;
        drop(state);
        if is_awaited {
            self.work.notify_one();
        }
        if must_tell {
            Pushed::TellController
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

    /// The announced thread could not be started.
    pub(crate) fn withdraw(&self) {
        let mut state = self.lock();
        state.threads -= 1;
        state.created -= 1;
    }

    /// An announced thread has come, with this id of the system. Returns its number.
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

    /// Ends what this worker did and waits for more; `None` ends the thread.
    pub(crate) fn next(&self, worker: usize, idle_timeout: Duration) -> Option<T> {
        let mut state = self.lock();
        state.end_run(worker);
        state.review(self.bounds, idle_timeout);
        loop {
            if let Some(work) = state.take(worker, self.bounds) {
                return Some(work);
            }
            // Whoever holds the gate shut takes what is left.
            if state.is_closed || state.is_superfluous(self.bounds) {
                state.leave(worker);
                return None;
            }
            state.idle += 1;
            let is_wanted;
            (state, is_wanted) = self.wait(state, idle_timeout);
            if !is_wanted && state.threads > self.bounds.base {
                state.leave(worker);
                return None;
            }
        }
    }

    /// Waits as an idle thread until it is wanted, or until `idle_timeout` has passed.
    fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, State<T>>,
        idle_timeout: Duration,
    ) -> (MutexGuard<'a, State<T>>, bool) {
        while state.called == 0 && !state.is_closed {
            let (woken, timeout) = self
                .work
                .wait_timeout(state, idle_timeout)
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

    /// Who is at work, those first who were last seen computing; and how much waits. If nothing
    /// waits, the controller will be told when something does again.
    pub(crate) fn inspect(&self) -> (Counts, Vec<AtWork>) {
        let mut state = self.lock();
        if state.is_empty() {
            state.is_controller_told = false;
            state.extra = 0;
        }
        let mut at_work: Vec<_> = state.at_work().collect();
        at_work.sort_by_key(|worker| worker.is_blocked);
        (state.counts(), at_work)
    }

    /// Takes what the controller saw, and lets `start` threads begin. Returns how many of these
    /// have yet to be created, each already announced.
    pub(crate) fn apply(&self, seen: &[AtWork], start: usize) -> usize {
        let mut state = self.lock();
        for worker in seen {
            state.mark(*worker);
        }
        state.extra = 0;
        let start = start.min(state.waiting().saturating_sub(state.coming()));
        let room = state.room(self.bounds);
        state.extra = start.saturating_sub(room);
        let woken = start.min(state.idle);
        state.call_idle(woken);
        let created = (start - woken).min(self.bounds.threads_max - state.threads);
        state.threads += created;
        state.created += created;
        drop(state);
        for _ in 0..woken {
            self.work.notify_one();
        }
        created
    }

    /// Takes out the work for which `is_dead` holds.
    pub(crate) fn sweep(&self, is_dead: impl Fn(&T) -> bool) -> Vec<T> {
        let mut dead: Vec<VecDeque<T>> = Vec::new();
        let mut state = self.lock();
        for lane in &mut state.lanes {
            let (out, kept) = lane.drain(..).partition(&is_dead);
            *lane = kept;
            dead.push(out);
        }
        drop(state);
        dead.into_iter().flatten().collect()
    }

    /// Takes out the new work at the heads of the lanes for which `is_overdue` holds.
    pub(crate) fn take_overdue(&self, is_overdue: impl Fn(&T) -> bool) -> Vec<T> {
        let mut overdue = Vec::new();
        let mut state = self.lock();
        for lane in [Lane::Ahead, Lane::Fresh] {
            let lane = &mut state.lanes[lane as usize];
            while lane.front().is_some_and(&is_overdue) {
                overdue.extend(lane.pop_front());
            }
        }
        drop(state);
        overdue
    }

    /// No thread stays once the lanes are empty.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.work.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().expect("no panic happens under this lock")
    }
}

impl<T> State<T> {
    fn waiting(&self) -> usize {
        self.lanes.iter().map(VecDeque::len).sum()
    }

    fn is_empty(&self) -> bool {
        self.lanes.iter().all(VecDeque::is_empty)
    }

    fn coming(&self) -> usize {
        self.called + self.created
    }

    fn started(&self) -> usize {
        self.working + self.coming()
    }

    fn view(&self) -> View<'_, T> {
        View {
            waiting: self.waiting() + self.reserved,
            ahead: self.waiting() - self.lanes[Lane::Fresh as usize].len(),
            started: self.started(),
            head: self.lanes[Lane::Fresh as usize].front(),
        }
    }

    fn counts(&self) -> Counts {
        Counts {
            waiting: self.waiting(),
            threads: self.threads,
            started: self.started(),
            working: self.working,
            blocked: self.blocked,
        }
    }

    /// How many more threads the gate lets through.
    fn room(&self, bounds: Bounds) -> usize {
        let computing = self.started() - self.blocked;
        self.extra + bounds.compute_max.saturating_sub(computing)
    }

    fn wake_if_open(&mut self, bounds: Bounds) -> bool {
        let is_open = self.idle > 0 && self.room(bounds) > 0;
        if is_open {
            self.call_idle(1);
        }
        is_open
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

    /// Whether a thread that has nothing to do may leave.
    fn is_superfluous(&mut self, bounds: Bounds) -> bool {
        let may_leave = self.surplus > 0 && self.threads > bounds.base;
        self.surplus -= usize::from(may_leave);
        may_leave
    }

    fn take(&mut self, worker: usize, bounds: Bounds) -> Option<T> {
        let computing = self.working - self.blocked;
        let is_extra = computing >= bounds.compute_max;
        if is_extra && self.extra == 0 {
            return None;
        }
        let work = self.pop()?;
        self.extra -= usize::from(is_extra);
        self.working += 1;
        let worker = self.workers[worker].as_mut().expect("it has entered");
        worker.is_working = true;
        worker.run += 1;
        Some(work)
    }

    fn pop(&mut self) -> Option<T> {
        let is_turn_of_fresh = self.taken % FRESH_EVERY == FRESH_EVERY - 1;
        let fresh = is_turn_of_fresh.then(|| self.lanes[Lane::Fresh as usize].pop_front());
        let work = fresh
            .flatten()
            .or_else(|| self.lanes.iter_mut().find_map(VecDeque::pop_front))?;
        self.taken += 1;
        Some(work)
    }

    /// Ends the worker's run; or, before its first one, counts it as come.
    fn end_run(&mut self, worker: usize) {
        let worker = self.workers[worker].as_mut().expect("it has entered");
        if !worker.is_working {
            self.created -= 1;
            return;
        }
        worker.is_working = false;
        self.working -= 1;
        self.blocked -= usize::from(worker.is_blocked);
        worker.is_blocked = false;
    }

    fn leave(&mut self, worker: usize) {
        self.workers[worker] = None;
        self.threads -= 1;
    }

    fn at_work(&self) -> impl Iterator<Item = AtWork> {
        let workers = self.workers.iter().enumerate();
        workers.filter_map(|(index, worker)| {
            let worker = worker.as_ref().filter(|worker| worker.is_working)?;
            Some(AtWork {
                worker: index,
                thread: worker.thread,
                run: worker.run,
                is_blocked: worker.is_blocked,
            })
        })
    }

    /// Marks a worker as blocked or not, if it is still at the same run.
    fn mark(&mut self, seen: AtWork) {
        let worker = self.workers.get_mut(seen.worker).and_then(Option::as_mut);
        let is_same = |worker: &&mut Worker| worker.is_working && worker.run == seen.run;
        let Some(worker) = worker.filter(is_same) else {
            return;
        };
        match (worker.is_blocked, seen.is_blocked) {
            (false, true) => self.blocked += 1,
            (true, false) => self.blocked -= 1,
            _ => {}
        }
        worker.is_blocked = seen.is_blocked;
    }
}
