use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use async_task::Runnable;

use super::book::{Book, Run, micros};
use super::builder::Settings;
use super::error::{Panicked, Reason, Rejected};
use super::hand_off::{HandOff, Lane, Pushed, View};
use super::importance::Importance;
use super::meters::Meters;
use super::status::{StageStatus, Threads};
use super::ticket::Ticket;
use super::worker;
use crate::admission::{LATE_GRACE, Load, admit, predicted_wait, retry_after};
use crate::controller;

pub(crate) type Work = Runnable<Arc<Ticket>>;

/// What a stage's handles, its threads and its work have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) hand_off: HandOff<Work>,
    book: Mutex<Book>,
    meters: OnceLock<Meters>,
    /// Work in the queue whose client has left.
    abandoned: AtomicUsize,
    threads_started: AtomicUsize,
    has_warned: AtomicBool,
}

impl Shared {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            hand_off: HandOff::new(settings.bounds),
            book: Mutex::new(Book::new()),
            meters: OnceLock::new(),
            settings,
            abandoned: AtomicUsize::new(0),
            threads_started: AtomicUsize::new(0),
            has_warned: AtomicBool::new(false),
        }
    }

    /// Lets work in or refuses it, by the wait that it would have.
    pub(crate) fn admit(
        &self,
        importance: Importance,
        is_likely_short: bool,
    ) -> Result<Arc<Ticket>, Rejected> {
        let lane = importance.lane(is_likely_short);
        let (now, means) = (Instant::now(), self.means());
        let mut predicted = Duration::ZERO;
        let reserved = self.hand_off.reserve(|view| {
            predicted = self.predict(view, lane, means, now);
            self.judge(view, importance, predicted)
        });
        match reserved {
            Ok(()) => Ok(Arc::new(Ticket::new(importance, lane, now, predicted))),
            Err(rejected) => Err(self.shed(rejected)),
        }
    }

    /// Lets work in that was begun before, and goes before all new work like any that was woken.
    pub(crate) fn admit_begun(importance: Importance) -> Arc<Ticket> {
        let ticket = Ticket::new(importance, Lane::Resumed, Instant::now(), Duration::ZERO);
        ticket.begin();
        Arc::new(ticket)
    }

    /// Says whether work would be let in now, without letting it in.
    pub(crate) fn would_admit(&self, importance: Importance) -> Result<(), Rejected> {
        let (now, means) = (Instant::now(), self.means());
        let judged = self.hand_off.look(|view| {
            let lane = importance.lane(false);
            let predicted = self.predict(view, lane, means, now);
            self.judge(view, importance, predicted)
        });
        judged.map_err(|rejected| self.shed(rejected))
    }

    /// Brings work to the threads: new work, or work that was woken.
    pub(crate) fn schedule(self: &Arc<Self>, work: Work) {
        let ticket = work.metadata();
        let lane = if ticket.has_begun() {
            Lane::Resumed
        } else {
            ticket.lane
        };
        match self.hand_off.push(lane, work) {
            Pushed::Done => {}
            Pushed::TellController => controller::tell(self),
            // Woken up to be cancelled: all that is left of it to do.
            Pushed::Closed(work) => drop(work),
        }
    }

    /// The turn of this work has come: whether it is still to be run.
    pub(crate) fn is_worth_running(&self, work: &Work) -> bool {
        let ticket = work.metadata();
        if ticket.has_begun() {
            return true;
        }
        let now = Instant::now();
        let waited = ticket.waited(now);
        let mut book = self.book();
        let is_late = ticket
            .importance
            .wait_max(self.settings.queue_wait_max)
            .is_some_and(|wait_max| !book.lateness.is_worth_running(now, waited, wait_max));
        let is_shed = is_late && ticket.drop_late();
        let has_begun = !is_shed && ticket.begin();
        if has_begun {
            book.record_wait(waited);
        }
        drop(book);
        if is_shed {
            self.record_shed(Reason::Late);
        } else if has_begun {
            self.meters().waited(waited);
        } else {
            self.abandoned.fetch_sub(1, Ordering::Relaxed);
        }
        has_begun
    }

    /// Drops what waits at the head of its lane and is too late already. If all threads are held,
    /// nobody else would tell its client.
    pub(crate) fn drop_overdue(&self) {
        let now = Instant::now();
        let wait_max = self.settings.queue_wait_max;
        let overdue = self.hand_off.take_overdue(|work| {
            let ticket = work.metadata();
            let wait_max = ticket.importance.wait_max(wait_max);
            wait_max.is_some_and(|max| ticket.waited(now) > max.saturating_add(LATE_GRACE))
        });
        for work in overdue {
            if work.metadata().drop_late() {
                self.record_shed(Reason::Late);
            } else {
                self.abandoned.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Work whose client has left. What has not begun stays where it is, and is swept out once it
    /// is more than half of the queue: so the queue is bounded, and leaving costs little.
    pub(crate) fn abandon(&self, ticket: &Ticket) {
        self.book().cancelled += 1;
        self.meters().cancelled();
        // Counted first: a thread that finds it abandoned counts it out again.
        let abandoned = self.abandoned.fetch_add(1, Ordering::Relaxed) + 1;
        if !ticket.abandon() {
            self.abandoned.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        if abandoned * 2 > self.hand_off.counts().waiting {
            let dead = self.hand_off.sweep(|work| work.metadata().is_abandoned());
            self.abandoned.fetch_sub(dead.len(), Ordering::Relaxed);
        }
    }

    pub(crate) fn end(&self, run: &Run, panicked: Option<&Panicked>) {
        self.book().record_end(run, panicked.is_some());
        self.meters().ended(run.held, panicked.is_some());
        if let Some(panicked) = panicked {
            self.log_panic(panicked);
        }
    }

    /// A run was given up in its midst.
    pub(crate) fn gave_up(&self, run: &Run) {
        self.book().record_run(run);
    }

    pub(crate) fn log_panic(&self, panicked: &Panicked) {
        let message = panicked.message();
        tracing::error!(stage = self.settings.name, message, "a handler panicked");
    }

    /// When to come back, for work that was dropped late.
    pub(crate) fn rejected_late(&self) -> Rejected {
        Rejected {
            reason: Reason::Late,
            retry_after: retry_after(self.newcomers_wait(), self.settings.queue_wait_max),
        }
    }

    /// Starts an announced thread; if that fails, takes the announcement back.
    pub(crate) fn start_thread(self: &Arc<Self>) -> io::Result<()> {
        let number = self.threads_started.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", self.settings.name);
        let stage = Arc::clone(self);
        let started = thread::Builder::new()
            .name(name)
            .spawn(move || worker::work(&stage));
        match started {
            Ok(_detached) => Ok(()),
            Err(error) => {
                self.hand_off.withdraw();
                Err(error)
            }
        }
    }

    /// Said once: the stage works on with the threads that it has.
    pub(crate) fn warn_of_threads(&self, error: &io::Error) {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            let stage = &self.settings.name;
            tracing::warn!(stage, %error, "the system gives no more threads");
        }
    }

    pub(crate) fn status(&self) -> StageStatus {
        let predicted = self.newcomers_wait();
        let counts = self.hand_off.counts();
        let book = self.book();
        StageStatus {
            name: self.settings.name.clone(),
            queue_len: self.alive(counts.waiting),
            queue_max: self.settings.queue_max,
            predicted_wait_micros: micros(predicted),
            queue_wait_max_micros: micros(self.settings.queue_wait_max),
            threads: Threads {
                total: counts.threads,
                working: counts.working,
                blocked: counts.blocked,
                idle: counts.threads - counts.working,
            },
            sheds: book.sheds,
            completed: book.completed,
            panicked: book.panicked,
            cancelled: book.cancelled,
            wait: book.wait(),
            service: book.service(),
        }
    }

    fn judge(
        &self,
        view: &View<'_, Work>,
        importance: Importance,
        predicted: Duration,
    ) -> Result<(), Rejected> {
        let wait_max = self.settings.queue_wait_max;
        let refuse = |reason, retry_after| Rejected {
            reason,
            retry_after,
        };
        if self.alive(view.waiting) >= importance.queue_max(self.settings.queue_max) {
            return Err(refuse(Reason::QueueFull, retry_after(predicted, wait_max)));
        }
        admit(predicted, importance.wait_max(wait_max))
            .map_err(|seconds| refuse(Reason::Wait, seconds))
    }

    /// How long new work that is nothing special would wait.
    fn newcomers_wait(&self) -> Duration {
        let (now, means) = (Instant::now(), self.means());
        self.hand_off
            .look(|view| self.predict(view, Lane::Fresh, means, now))
    }

    fn predict(&self, view: &View<'_, Work>, lane: Lane, means: Means, now: Instant) -> Duration {
        predicted_wait(&self.load(view, lane, means, now))
    }

    fn load(&self, view: &View<'_, Work>, lane: Lane, means: Means, now: Instant) -> Load {
        let ahead = means.ahead.saturating_mul(count(view.ahead));
        let (waiting, backlog, head) = match lane {
            Lane::Resumed | Lane::Ahead => (view.ahead, ahead, None),
            Lane::Fresh => {
                let waiting = self.alive(view.waiting);
                let fresh = count(waiting.saturating_sub(view.ahead));
                let fresh = means.fresh.saturating_mul(fresh);
                (waiting, ahead.saturating_add(fresh), view.head)
            }
        };
        let lateness = |head: &Work| head.metadata().late(now);
        Load {
            waiting,
            running: view.started,
            compute_threads: self.settings.bounds.compute_max,
            threads_max: self.settings.bounds.threads_max,
            backlog,
            held: means.held,
            head_late: head.map(lateness).unwrap_or_default(),
        }
    }

    fn alive(&self, waiting: usize) -> usize {
        waiting.saturating_sub(self.abandoned.load(Ordering::Relaxed))
    }

    fn shed(&self, rejected: Rejected) -> Rejected {
        self.record_shed(rejected.reason);
        rejected
    }

    fn record_shed(&self, reason: Reason) {
        self.book().record_shed(reason);
        self.meters().shed(reason);
    }

    fn means(&self) -> Means {
        let book = self.book();
        Means {
            ahead: book.wanted_ahead.mean(),
            fresh: book.wanted_fresh.mean(),
            held: book.held.mean(),
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Foreign code: not to be called while a lock is held.
    fn meters(&self) -> &Meters {
        self.meters.get_or_init(|| Meters::of(&self.settings.name))
    }
}

/// Mean times of runs.
#[derive(Clone, Copy)]
struct Means {
    /// That a run wants a processor, of those that go ahead.
    ahead: Duration,
    /// The same of the others.
    fresh: Duration,
    /// That a run holds a thread.
    held: Duration,
}

fn count(runs: usize) -> u32 {
    u32::try_from(runs).unwrap_or(u32::MAX)
}
