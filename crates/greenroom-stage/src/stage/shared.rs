use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use async_task::Runnable;
use greenroom_quantiles::micros;
use parking_lot::Mutex;

use super::admit;
use super::builder::Settings;
use super::error::{Panicked, Reason, Rejected};
use super::meters::Meters;
use super::scheduler::{Pushed, Scheduler};
use super::stats::{Run, Stats};
use super::status::{StageStatus, Threads};
use super::submission::Submission;
use super::ticket::{Terms, Ticket};
use super::worker;
use crate::admission::{LATE_GRACE, retry_after};
use crate::controller;

pub(crate) type Work = Runnable<Arc<Ticket>>;

impl admit::Queued for Work {
    fn late(&self, now: Instant) -> Duration {
        self.metadata().late(now)
    }
}

/// Abandoned work is swept out when it is more than one in so many of what waits.
const SWEPT_FOR_ROOM: usize = 2;
/// The same when other work would not be admitted.
const SWEPT_FOR_ADMISSION: usize = 8;

/// The state that a stage's handles, its threads and its work share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(super) number: u64,
    pub(crate) settings: Settings,
    pub(crate) scheduler: Scheduler<Work>,
    stats: Mutex<Stats>,
    meters: OnceLock<Meters>,
    /// Waiting work whose client has left.
    abandoned: AtomicUsize,
    /// Clients of begun work have left since that was looked for.
    have_left: AtomicBool,
    /// Bytes that the work in the queue takes.
    held_bytes: AtomicUsize,
    threads_started: AtomicUsize,
    has_warned: AtomicBool,
}

impl Shared {
    pub(crate) fn new(settings: Settings) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            scheduler: Scheduler::new(settings.bounds, settings.limits.queue_wait_max),
            stats: Mutex::new(Stats::new()),
            meters: OnceLock::new(),
            settings,
            abandoned: AtomicUsize::new(0),
            have_left: AtomicBool::new(false),
            held_bytes: AtomicUsize::new(0),
            threads_started: AtomicUsize::new(0),
            has_warned: AtomicBool::new(false),
        }
    }

    /// Admits or rejects work that holds `bytes`, by the wait that it would have.
    pub(crate) fn admit(
        &self,
        submission: Submission,
        bytes: usize,
    ) -> Result<Arc<Ticket>, Rejected> {
        let now = Instant::now();
        let admitted = self.swept_for(|state| {
            self.scheduler
                .reserve(|view| admit::admit(view, &submission, bytes, state, now))
        });
        match admitted {
            Ok(terms) => {
                self.held_bytes.fetch_add(bytes, Ordering::Relaxed);
                Ok(Arc::new(Ticket::new(submission, terms, bytes, now)))
            }
            Err(not_admitted) => Err(self.reject(&submission, not_admitted)),
        }
    }

    /// Admits work that was begun before, like any that was woken.
    pub(crate) fn admit_begun(submission: Submission) -> Arc<Ticket> {
        let terms = Terms {
            predicted: Duration::ZERO,
            wait_max: None,
            expected: Duration::ZERO,
            computes: !submission.is_likely_short,
        };
        let ticket = Ticket::new(submission, terms, 0, Instant::now());
        ticket.begin();
        Arc::new(ticket)
    }

    /// Checks if work would be admitted now, without admitting it.
    pub(crate) fn would_admit(&self, submission: Submission) -> Result<(), Rejected> {
        let now = Instant::now();
        let judged = self.swept_for(|state| {
            self.scheduler
                .look(|view| admit::admit(view, &submission, 0, state, now))
        });
        judged
            .map(drop)
            .map_err(|not_admitted| self.reject(&submission, not_admitted))
    }

    /// Judges work, and if it is not admitted once more without that whose clients have left,
    /// which is waited for by nobody.
    fn swept_for<T, E>(&self, judge: impl Fn(&admit::State<'_>) -> Result<T, E>) -> Result<T, E> {
        let judged = judge(&self.admit_state());
        if judged.is_err() && self.sweep(SWEPT_FOR_ADMISSION) {
            return judge(&self.admit_state());
        }
        judged
    }

    /// Brings work to the threads: new work, or work that was woken.
    pub(crate) fn schedule(self: &Arc<Self>, work: Work) {
        match self.scheduler.push(work.metadata().entry(), work) {
            Pushed::Done => {}
            Pushed::NotifyController => controller::notify(self),
            // It was woken to be cancelled, and dropping it does that.
            Pushed::Closed(work) => drop(work),
        }
    }

    /// True if work whose turn has come is still to be run.
    pub(crate) fn is_worth_running(&self, work: &Work) -> bool {
        let ticket = work.metadata();
        if ticket.has_begun() {
            return true;
        }
        self.held_bytes.fetch_sub(ticket.bytes, Ordering::Relaxed);
        let now = Instant::now();
        let waited = ticket.waited(now);
        let mut stats = self.stats.lock();
        let is_late = ticket
            .terms
            .wait_max
            .is_some_and(|wait_max| !stats.lateness.is_worth_running(now, waited, wait_max));
        let is_shed = is_late && ticket.drop_late();
        let has_begun = !is_shed && ticket.begin();
        if has_begun {
            stats.record_wait(waited);
        }
        drop(stats);
        if is_shed {
            self.record_late(ticket);
        } else if has_begun {
            self.meters().waited(waited);
        } else {
            self.abandoned.fetch_sub(1, Ordering::Relaxed);
        }
        has_begun
    }

    /// Drops waiting work that is too late already. If all threads are held, no other code would
    /// notify its client.
    pub(crate) fn drop_overdue(&self) {
        let now = Instant::now();
        let overdue = self.take_out(|ticket| {
            let wait_max = ticket.terms.wait_max;
            !ticket.has_begun()
                && wait_max.is_some_and(|max| ticket.waited(now) > max.saturating_add(LATE_GRACE))
        });
        for work in overdue {
            let ticket = work.metadata();
            if ticket.drop_late() {
                self.record_late(ticket);
            } else {
                self.abandoned.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Brings begun work forward whose client has left while it waited for a thread. Its future is
    /// dropped by the thread that takes it, and gives back what it holds.
    pub(crate) fn bring_forward_left(&self) {
        if self.have_left.swap(false, Ordering::AcqRel) {
            self.scheduler
                .bring_forward(|work| work.metadata().has_left());
        }
    }

    fn take_out(&self, is_out: impl Fn(&Ticket) -> bool) -> Vec<Work> {
        // Dropped by the caller, outside the scheduler's lock: destructors are foreign code.
        let out = self.scheduler.take_out(|work| is_out(work.metadata()));
        let bytes = out.iter().map(|work| work.metadata().bytes).sum();
        self.held_bytes.fetch_sub(bytes, Ordering::Relaxed);
        out
    }

    /// Gives up work whose client has left. Work that has not begun stays in the queue, and is
    /// swept out once it is more than half of it: so the queue is bounded, and leaving costs
    /// little. Begun work that waits for a wake-up comes next, to be dropped; if it waits for a
    /// thread already, it is brought forward at the controller's look.
    pub(crate) fn abandon(&self, ticket: &Ticket) {
        self.stats.lock().cancelled += 1;
        self.meters().cancelled();
        // Counted first: a thread that finds it abandoned counts it out again.
        self.abandoned.fetch_add(1, Ordering::Relaxed);
        if !ticket.abandon() {
            self.abandoned.fetch_sub(1, Ordering::Relaxed);
            if ticket.leave() {
                self.have_left.store(true, Ordering::Release);
            }
            return;
        }
        self.sweep(SWEPT_FOR_ROOM);
    }

    /// Sweeps out abandoned work if more than one in `part` of what waits is that; returns whether
    /// it did.
    fn sweep(&self, part: usize) -> bool {
        let abandoned = self.abandoned.load(Ordering::Relaxed);
        if abandoned == 0 || abandoned * part <= self.scheduler.counts().waiting {
            return false;
        }
        let dead = self.take_out(Ticket::is_abandoned);
        self.abandoned.fetch_sub(dead.len(), Ordering::Relaxed);
        true
    }

    pub(crate) fn end(&self, ticket: &Ticket, run: &Run, panicked: Option<&Panicked>) {
        let mut stats = self.stats.lock();
        if ticket.is_whole_run() {
            stats.record_run(run);
        }
        stats.record_end(run, panicked.is_some());
        drop(stats);
        self.meters().ended(run.held, panicked.is_some());
        if let Some(panicked) = panicked {
            self.log_panic(panicked);
        }
    }

    /// Records a run that was given up in its midst.
    pub(crate) fn gave_up(&self, ticket: &Ticket, run: &Run) {
        self.stats.lock().record_given_up(run);
        self.scheduler
            .learn_at_least(ticket.flow().route, ticket.ended(run.wanted));
    }

    /// Records the time that a run, or a part of it, has used.
    pub(crate) fn note_used(&self, submission: &Submission, used: Duration, now: Instant) {
        self.stats.lock().shares.used(submission, used, now);
        self.meters().used(&submission.route, used);
    }

    pub(crate) fn log_panic(&self, panicked: &Panicked) {
        let message = panicked.message();
        tracing::error!(stage = self.settings.name, message, "a handler panicked");
    }

    /// Returns the rejection of work that was dropped late.
    pub(crate) fn rejected_late(&self) -> Rejected {
        Rejected {
            reason: Reason::Late,
            retry_after: retry_after(self.longest_wait(), self.settings.limits.queue_wait_max),
        }
    }

    /// Starts an announced thread; if that fails, withdraws the announcement.
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
                self.scheduler.withdraw();
                Err(error)
            }
        }
    }

    /// Warns once that the system gives no more threads: the stage works on with those that it has.
    pub(crate) fn warn_of_threads(&self, error: &io::Error) {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            let stage = &self.settings.name;
            tracing::warn!(stage, %error, "the system gives no more threads");
        }
    }

    pub(crate) fn status(&self) -> StageStatus {
        let predicted = self.longest_wait();
        let counts = self.scheduler.counts();
        let stats = self.stats.lock();
        StageStatus {
            name: self.settings.name.clone(),
            queue_len: self.alive(counts.waiting),
            queue_max: self.settings.limits.queue_max,
            queue_bytes: self.held_bytes.load(Ordering::Relaxed),
            queue_bytes_max: self.settings.limits.queue_bytes_max,
            predicted_wait_micros: micros(predicted),
            queue_wait_max_micros: micros(self.settings.limits.queue_wait_max),
            threads: Threads {
                total: counts.threads,
                working: counts.working,
                blocked: counts.blocked,
                idle: counts.threads - counts.working,
            },
            sheds: stats.sheds,
            completed: stats.completed,
            panicked: stats.panicked,
            cancelled: stats.cancelled,
            wait: stats.wait(),
            service: stats.service(),
            shares: stats.shares.shown(Instant::now()),
        }
    }

    /// Predicts the wait of the last of all waiting runs.
    pub(crate) fn longest_wait(&self) -> Duration {
        let state = self.admit_state();
        self.scheduler
            .look(|view| admit::longest_wait(view, &state))
    }

    fn admit_state(&self) -> admit::State<'_> {
        admit::State {
            settings: &self.settings,
            held: self.stats.lock().held.mean(),
            held_bytes: self.held_bytes.load(Ordering::Relaxed),
            abandoned: self.abandoned.load(Ordering::Relaxed),
        }
    }

    fn alive(&self, waiting: usize) -> usize {
        waiting.saturating_sub(self.abandoned.load(Ordering::Relaxed))
    }

    fn reject(&self, submission: &Submission, not_admitted: admit::NotAdmitted) -> Rejected {
        self.record_shed(
            submission,
            not_admitted.expected,
            not_admitted.rejected.reason,
        );
        not_admitted.rejected
    }

    fn record_late(&self, ticket: &Ticket) {
        self.record_shed(&ticket.submission, ticket.terms.expected, Reason::Late);
    }

    fn record_shed(&self, submission: &Submission, expected: Duration, reason: Reason) {
        let now = Instant::now();
        self.stats
            .lock()
            .record_shed(submission, expected, reason, now);
        self.meters().shed(&submission.route, reason);
    }

    /// Returns the metrics. Their recorder is foreign code: not to be called while a lock is held.
    fn meters(&self) -> &Meters {
        self.meters.get_or_init(|| Meters::of(&self.settings.name))
    }
}
