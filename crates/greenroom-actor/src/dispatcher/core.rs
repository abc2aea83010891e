use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering, fence};
use std::time::Duration;

use atomic_waker::AtomicWaker;
use crossbeam_deque::Stealer;
use crossbeam_queue::SegQueue;
use crossbeam_utils::CachePadded;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::time::Instant;

use super::alarm::Alarm;
use super::local::end_orphan;
use super::sleep::Sleeper;
use super::status::DispatcherStatus;
use super::timetable::Timetable;
use super::wheel::AlarmKey;
use crate::cell::AnyCell;
use crate::id::ActorId;
use crate::raw::Turn;
use crate::system;

/// A dispatcher: the shared halves of its workers.
pub(crate) struct Core {
    pub(crate) name: Box<str>,
    pub(crate) kind: &'static str,
    pub(crate) throughput: u32,
    workers: Box<[CachePadded<WorkerShared>]>,
    /// The number of workers that sleep, or are about to.
    sleeping: AtomicUsize,
    next_home: AtomicU16,
    is_closed: AtomicBool,
    /// The microseconds of its workers that the metrics have.
    taken_micros: AtomicU64,
}

/// The shared half of a worker: its queues, its alarms, its statistics.
pub(super) struct WorkerShared {
    /// Actors that others have scheduled.
    inbox: SegQueue<Turn>,
    /// Actors that actors of this worker have scheduled.
    pub(super) stealer: Stealer<Turn>,
    sleeper: Sleeper,
    pub(super) waker: AtomicWaker,
    pub(super) timetable: Timetable,
    pub(super) stats: CachePadded<WorkerStats>,
    /// `true` once the worker is gone: a thread that puts something into the inbox has to move it.
    /// Alarms stay in the timetable as long as other workers live, and the watchdog lets them go
    /// off.
    is_gone: AtomicBool,
}

/// The statistics of a worker, for the watchdog and the status.
pub(super) struct WorkerStats {
    /// The number of the actor that runs, or 0.
    pub(super) running: AtomicU64,
    /// The number of turns that actors have had.
    pub(super) turns: AtomicU64,
    /// The time that the worker ran actors, in microseconds.
    pub(super) busy_micros: AtomicU64,
    /// The number of times that an actor held the worker for too long.
    pub(super) stalls: AtomicU64,
    /// `true` if its clock is not one that a test moves.
    pub(super) is_clock_real: AtomicBool,
}

impl Core {
    pub(super) fn new(
        name: &str,
        kind: &'static str,
        throughput: u32,
        stealers: Vec<Stealer<Turn>>,
    ) -> Self {
        let workers = stealers
            .into_iter()
            .map(|stealer| CachePadded::new(WorkerShared::new(stealer)));
        Self {
            name: name.into(),
            kind,
            throughput,
            workers: workers.collect(),
            sleeping: AtomicUsize::new(0),
            next_home: AtomicU16::new(0),
            is_closed: AtomicBool::new(false),
            taken_micros: AtomicU64::new(0),
        }
    }

    /// Returns the worker for a new actor: each in turn, of those that live.
    pub(crate) fn next_home(&self) -> u16 {
        match self.workers.len() {
            1 => 0,
            workers => {
                let next = self.next_home.fetch_add(1, Ordering::Relaxed);
                let next = next % u16::try_from(workers).unwrap_or(u16::MAX);
                self.living(next).unwrap_or(next)
            }
        }
    }

    /// Returns this worker, or the next that lives if it is gone.
    fn living(&self, worker: u16) -> Option<u16> {
        let workers = self.workers.len();
        (0..workers)
            .map(|offset| (usize::from(worker) + offset) % workers)
            .find(|number| !self.workers[*number].is_gone.load(Ordering::SeqCst))
            .and_then(|number| u16::try_from(number).ok())
    }

    /// Schedules an actor from outside of all workers of this dispatcher.
    pub(super) fn inject(&self, turn: Turn, home: u16) {
        let shared = self.worker(home);
        shared.inbox.push(turn);
        // Orders the push before the looks at the worker, which says first that it is gone, or
        // sleeps, and then looks at its inbox.
        fence(Ordering::SeqCst);
        if shared.is_gone() {
            self.take_over(shared);
        } else if !self.fetch(shared, shared.sleeper.wake_fenced()) {
            // It is at work, perhaps for long: another may steal this.
            self.wake_any();
        }
    }

    /// Wakes a sleeping worker to look for work, if there is one.
    pub(super) fn wake_any(&self) {
        if self.has_resting() {
            let _ = self.workers.iter().any(|shared| self.wake(shared));
        }
    }

    /// Wakes workers that have yielded, from outside of the runtime: tokio keeps a task that yields
    /// with the thread, which another task may hold by now. Woken from here, it goes where any
    /// thread finds it. One that is not kept is polled once more than it need be.
    pub(super) fn fetch_yielded(&self) {
        if self.kind != "tokio" {
            return;
        }
        for shared in self.workers() {
            if shared.stats.running.load(Ordering::Relaxed) == 0 {
                shared.waker.wake();
            }
        }
    }

    pub(super) fn has_resting(&self) -> bool {
        self.sleeping.load(Ordering::Relaxed) > 0
    }

    pub(super) fn go_to_sleep(&self, worker: u16) {
        self.sleeping.fetch_add(1, Ordering::Relaxed);
        self.worker(worker).sleeper.go_to_sleep();
    }

    /// Notes that a worker found work, or was polled for another reason, while it slept.
    pub(super) fn get_up(&self, worker: u16) {
        if self.worker(worker).sleeper.wake_fenced() {
            self.sleeping.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn wake(&self, shared: &WorkerShared) -> bool {
        self.fetch(shared, shared.sleeper.wake())
    }

    /// Has a worker polled that was woken. Returns `true` if it was.
    fn fetch(&self, shared: &WorkerShared, is_woken: bool) -> bool {
        if is_woken {
            self.sleeping.fetch_sub(1, Ordering::Relaxed);
            shared.waker.wake();
            if self.kind == "tokio" {
                fill_lifo_slot();
            }
        }
        is_woken
    }

    /// Takes work of another worker: what was sent to it first, then what its own actors have
    /// scheduled.
    pub(super) fn steal(&self, worker: u16) -> Option<Turn> {
        let others = self.workers.len() - 1;
        (1..=others).find_map(|offset| {
            let shared = &self.workers[(usize::from(worker) + offset) % self.workers.len()];
            let injected = shared.take_injected();
            injected.or_else(|| steal_from(&shared.stealer))
        })
    }

    pub(super) fn take_injected(&self, worker: u16) -> Option<Turn> {
        self.worker(worker).take_injected()
    }

    /// Returns `true` if there is work for a worker whose own queue is empty.
    pub(super) fn has_work(&self, worker: u16) -> bool {
        let own = self.worker(worker);
        let mut others = self.workers().filter(|shared| !std::ptr::eq(*shared, own));
        !own.inbox.is_empty() || others.any(WorkerShared::has_waiting)
    }

    pub(super) fn worker(&self, worker: u16) -> &WorkerShared {
        let workers = self.workers.len();
        &self.workers[usize::from(worker) % workers]
    }

    pub(super) fn workers(&self) -> impl Iterator<Item = &WorkerShared> {
        self.workers.iter().map(|shared| &**shared)
    }

    /// Notes that the worker is gone, with the runtime or the stage that it was on. Others take
    /// over; after the last of them actors are killed, for no worker would ever run them.
    pub(super) fn leave(&self, worker: u16, left: Vec<Turn>) {
        let shared = self.worker(worker);
        shared.is_gone.store(true, Ordering::SeqCst);
        // Left asleep, it would be woken in place of others, and not run.
        self.get_up(worker);
        for turn in left {
            shared.inbox.push(turn);
        }
        self.take_over(shared);
        if !self.is_gone() {
            return;
        }
        self.workers().for_each(|shared| shared.timetable.close());
        // Idle actors are in no queue.
        if !self.is_closed() {
            system::end_actors_of(self);
        }
    }

    /// Moves the actors of a worker that is gone to those that live, or ends them if there are
    /// none.
    fn take_over(&self, shared: &WorkerShared) {
        while let Some(turn) = shared.inbox.pop() {
            let worker = self.next_home();
            if self.worker(worker).is_gone() {
                end_orphan(turn);
            } else {
                self.inject(turn, worker);
            }
        }
    }

    /// Lets the workers end when they have nothing to do.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        for shared in self.workers() {
            shared.waker.wake();
        }
    }

    /// Returns `true` if it was started for one actor, and ends with it.
    pub(crate) fn is_of_one_actor(&self) -> bool {
        self.kind == "pinned"
    }

    /// Notes that an actor ended: if the dispatcher was for that one only, its thread ends.
    pub(crate) fn actor_ended(&self) {
        if self.is_of_one_actor() {
            self.close();
        }
    }

    /// Returns `true` if all workers are gone.
    pub(crate) fn is_gone(&self) -> bool {
        self.workers().all(WorkerShared::is_gone)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    pub(crate) fn call_at(
        &self,
        worker: u16,
        at: Instant,
        call: Box<dyn FnOnce() + Send>,
    ) -> (u16, AlarmKey) {
        self.set(worker, at, Alarm::Call(call))
    }

    /// Sets an alarm with this worker, or with another if it is gone. Returns the worker that has
    /// it.
    pub(super) fn set(&self, worker: u16, at: Instant, alarm: Alarm) -> (u16, AlarmKey) {
        let worker = self.living(worker).unwrap_or(worker);
        let shared = self.worker(worker);
        let (key, is_earliest) = shared.timetable.set(at, alarm);
        // The last worker to go closes the timetable, by its lock: this alarm was there by then, or
        // that it is gone is seen.
        if shared.is_gone() && self.is_gone() {
            shared.timetable.close();
        }
        if is_earliest {
            self.wake(shared);
        }
        (worker, key)
    }

    pub(crate) fn cancel_alarm(&self, worker: u16, key: AlarmKey) {
        drop(self.timetable(worker).cancel(key));
    }

    pub(super) fn timetable(&self, worker: u16) -> &Timetable {
        &self.worker(worker).timetable
    }

    /// Returns the actor that this one waits for, if it asks one. It asked on the worker that ran
    /// it then, most likely the one that ran it last.
    pub(crate) fn waits_for(&self, asker: ActorId, home: u16) -> Option<Arc<dyn AnyCell>> {
        let (before, from) = self
            .workers
            .split_at(usize::from(home) % self.workers.len());
        let mut all = from.iter().chain(before);
        all.find_map(|shared| shared.timetable.waits_for(asker))
    }

    /// Returns the number of actors that wait for a worker.
    pub(crate) fn runnable(&self) -> usize {
        let waiting = |shared: &WorkerShared| shared.inbox.len() + shared.stealer.len();
        self.workers().map(waiting).sum()
    }

    /// Returns the microseconds that workers have run actors since the last call.
    pub(crate) fn take_busy_micros(&self) -> u64 {
        let busy = self.busy_micros();
        let taken = self.taken_micros.swap(busy, Ordering::Relaxed);
        busy.saturating_sub(taken)
    }

    fn busy_micros(&self) -> u64 {
        let of_worker = |shared: &WorkerShared| shared.stats.busy_micros.load(Ordering::Relaxed);
        self.workers().map(of_worker).sum()
    }

    pub(crate) fn status(&self) -> DispatcherStatus {
        let sum = |count: fn(&WorkerShared) -> u64| self.workers().map(count).sum::<u64>();
        let busy = self.busy_micros();
        DispatcherStatus {
            name: self.name.to_string(),
            kind: self.kind,
            workers: self.workers().filter(|shared| !shared.is_gone()).count(),
            resting: self
                .sleeping
                .load(Ordering::Relaxed)
                .min(self.workers.len()),
            runnable: self.runnable(),
            turns: sum(|shared| shared.stats.turns.load(Ordering::Relaxed)),
            busy_seconds: Duration::from_micros(busy).as_secs_f64(),
            stalls: sum(|shared| shared.stats.stalls.load(Ordering::Relaxed)),
        }
    }
}

impl WorkerShared {
    fn new(stealer: Stealer<Turn>) -> Self {
        let stats = WorkerStats {
            running: AtomicU64::new(0),
            turns: AtomicU64::new(0),
            busy_micros: AtomicU64::new(0),
            stalls: AtomicU64::new(0),
            is_clock_real: AtomicBool::new(false),
        };
        Self {
            inbox: SegQueue::new(),
            stealer,
            sleeper: Sleeper::new(),
            waker: AtomicWaker::new(),
            timetable: Timetable::new(),
            stats: CachePadded::new(stats),
            is_gone: AtomicBool::new(false),
        }
    }

    fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::SeqCst)
    }

    /// Takes an actor that others have scheduled. That there is none costs no fence, as `pop` does.
    fn take_injected(&self) -> Option<Turn> {
        if self.inbox.is_empty() {
            return None;
        }
        self.inbox.pop()
    }

    pub(super) fn has_waiting(&self) -> bool {
        !self.inbox.is_empty() || !self.stealer.is_empty()
    }
}

/// Makes room for others to take the task that a worker has just woken: it is the next to run on
/// the same thread of tokio, and no other thread can take it, however long an actor holds that
/// worker. One more task, which does nothing, takes that place. Whether an actor runs already does
/// not matter: between two turns, or when alarms go off, a worker wakes others too, and the next
/// actor may hold it.
fn fill_lifo_slot() {
    if !super::local::is_worker() {
        return;
    }
    if let Ok(runtime) = Handle::try_current()
        && runtime.runtime_flavor() == RuntimeFlavor::MultiThread
    {
        drop(runtime.spawn(std::future::ready(())));
    }
}

fn steal_from(stealer: &Stealer<Turn>) -> Option<Turn> {
    loop {
        match stealer.steal() {
            crossbeam_deque::Steal::Success(turn) => return Some(turn),
            crossbeam_deque::Steal::Empty => return None,
            crossbeam_deque::Steal::Retry => {}
        }
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}
