use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use greenroom_stage::admission::{Lateness, Load, ServiceTime, admit, predicted_wait, retry_after};
use greenroom_stage::{Reason, Rejected, Sheds};

use super::queue::{Turns, Waiter};
use super::routes::{Route, Routes};
use super::run::Given;
use super::seat::{Accounts, Seat, Settlement};
use super::{Ending, QueueStatus, Worker};
use crate::builder::Settings;

/// How many workers that are gone are remembered with their ending.
const GONE_MAX: usize = 64;

/// What is remembered of a worker that is gone.
#[derive(Clone, Copy, Debug)]
struct Gone {
    key: u32,
    ending: Ending,
    released: u64,
}

/// What the lock guards.
#[derive(Debug)]
pub(super) struct State {
    seats: Vec<Accounts>,
    gone: VecDeque<Gone>,
    queue: VecDeque<Arc<Waiter>>,
    concurrency: u32,
    queue_max: usize,
    queue_wait_max: Duration,
    served_max: Option<u64>,
    routes: Routes,
    service: ServiceTime,
    lateness: Lateness,
    sheds: Sheds,
}

impl State {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            seats: Vec::new(),
            gone: VecDeque::new(),
            queue: VecDeque::new(),
            concurrency: settings.concurrency.requests_max(),
            queue_max: settings.queue_max,
            queue_wait_max: settings.queue_wait_max,
            served_max: settings.max_requests,
            routes: Routes::default(),
            service: ServiceTime::default(),
            lateness: Lateness::default(),
            sheds: Sheds::default(),
        }
    }

    pub(super) fn queue_is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// A run of the worker that has the fewest. One that may be long gets a worker for itself.
    pub(super) fn take_run(&mut self, route: Route, now: Instant) -> Option<Given> {
        let blocking = self.routes.depth(route, false);
        let event_driven = self.routes.depth(route, true);
        let depth = |worker: &Worker| {
            if worker.is_event_driven {
                event_driven
            } else {
                blocking
            }
        };
        let concurrency = self.concurrency;
        let seats = self.seats.iter_mut();
        let free = seats.filter(|seat| seat.has_room(depth(&seat.worker), concurrency, now));
        let seat = free.min_by_key(|seat| (seat.running, seat.waiting))?;
        let is_alone = depth(&seat.worker) == 1;
        Some(Given {
            route,
            behind: seat.begin(is_alone, now),
            worker: Arc::clone(&seat.worker),
        })
    }

    /// A run that nobody was there to take.
    fn take_back(&mut self, given: &Given) {
        if let Some(seat) = self.seat(given.worker.key) {
            seat.running = seat.running.saturating_sub(1);
        }
    }

    pub(super) fn enter_queue(
        &mut self,
        route: Route,
        now: Instant,
    ) -> Result<Arc<Waiter>, Rejected> {
        if self.queue.len() >= self.queue_max {
            self.queue.retain(|waiter| !waiter.is_over());
        }
        let predicted = self.predicted_wait(now);
        if self.queue.len() >= self.queue_max {
            self.sheds.queue_full += 1;
            return Err(self.rejected(Reason::QueueFull, predicted));
        }
        if let Err(retry_after) = admit(predicted, Some(self.queue_wait_max)) {
            self.sheds.wait += 1;
            let reason = Reason::Wait;
            return Err(Rejected {
                reason,
                retry_after,
            });
        }
        let waiter = Waiter::new(route, now, predicted);
        self.queue.push_back(Arc::clone(&waiter));
        Ok(waiter)
    }

    /// Gives the free runs to those who have waited longest.
    pub(super) fn serve_queue(&mut self, now: Instant) -> Turns {
        let mut turns = Turns::default();
        while let Some(waiter) = self.queue.front().cloned() {
            let route = waiter.route;
            let waited = now.saturating_duration_since(waiter.since);
            if waiter.is_over() {
                self.queue.pop_front();
            } else if !self
                .lateness
                .is_worth_running(now, waited, self.queue_wait_max)
            {
                let late = self.queue.pop_front();
                let rejected = self.too_late();
                turns.add(late.and_then(|late| late.refuse(rejected)));
            } else if let Some(given) = self.take_run(route, now) {
                self.queue.pop_front();
                match waiter.call(given) {
                    Ok(waker) => turns.add(waker),
                    Err(given) => self.take_back(&given),
                }
            } else {
                break;
            }
        }
        turns
    }

    /// Counts a request whose turn came too late, or not at all.
    pub(super) fn too_late(&mut self) -> Rejected {
        self.sheds.late += 1;
        self.rejected(Reason::Late, self.queue_wait_max)
    }

    /// Whether the supervisor should have a look.
    pub(super) fn settle(&mut self, key: u32, settlement: &mut Settlement, now: Instant) -> bool {
        for (route, busy) in &settlement.released {
            if *route != Route::LEAVING {
                self.service.record(*busy);
            }
            self.routes.record(*route, *busy);
        }
        let served_max = self.served_max.unwrap_or(u64::MAX);
        let Some(seat) = self.seat(key) else {
            settlement.clear();
            return false;
        };
        let was_spent = seat.served >= served_max;
        seat.settle(settlement, now);
        let is_spent = seat.served >= served_max;
        (is_spent && !was_spent) || (seat.draining && seat.under_way() == 0)
    }

    pub(super) fn has_idle_besides(&self, key: u32, now: Instant) -> bool {
        let mut others = self.seats.iter().filter(|seat| seat.worker.key != key);
        others.any(|seat| seat.running == 0 && seat.has_room(1, self.concurrency, now))
    }

    /// How many runs the worker has given back.
    pub(super) fn released(&self, key: u32) -> Option<u64> {
        let seat = self.seats.iter().find(|seat| seat.worker.key == key);
        let seated = seat.map(|seat| seat.released);
        seated.or_else(|| self.gone(key).map(|gone| gone.released))
    }

    pub(super) fn condemn(&mut self, key: u32) {
        if let Some(seat) = self.seat(key) {
            seat.condemned = true;
        }
    }

    pub(super) fn add(&mut self, worker: Arc<Worker>, now: Instant) {
        self.seats.push(Accounts::new(worker, now));
    }

    pub(super) fn drain(&mut self, key: u32) {
        if let Some(seat) = self.seat(key) {
            seat.draining = true;
        }
    }

    pub(super) fn note_ending(&mut self, key: u32, ending: Ending) {
        if let Some(seat) = self.seat(key) {
            seat.ending = ending;
            seat.condemned = true;
        }
    }

    pub(super) fn remove(&mut self, key: u32) {
        let Some(index) = self.seats.iter().position(|seat| seat.worker.key == key) else {
            return;
        };
        let seat = self.seats.remove(index);
        seat.worker.note_gone();
        self.gone.push_back(Gone {
            key,
            ending: seat.ending,
            released: seat.released,
        });
        if self.gone.len() > GONE_MAX {
            self.gone.pop_front();
        }
    }

    pub(super) fn ending(&self, key: u32) -> Ending {
        let seated = self.seats.iter().find(|seat| seat.worker.key == key);
        let seated = seated.map(|seat| seat.ending);
        seated
            .or_else(|| self.gone(key).map(|gone| gone.ending))
            .unwrap_or_default()
    }

    fn gone(&self, key: u32) -> Option<&Gone> {
        self.gone.iter().find(|gone| gone.key == key)
    }

    pub(super) fn seats(&self, now: Instant) -> Vec<Seat> {
        self.seats.iter().map(|seat| seat.look(now)).collect()
    }

    pub(super) fn status(&self, now: Instant) -> QueueStatus {
        QueueStatus {
            queue_len: self.queue.iter().filter(|waiter| !waiter.is_over()).count(),
            queue_max: self.queue_max,
            queue_wait_max_micros: micros(self.queue_wait_max),
            predicted_wait_micros: micros(self.predicted_wait(now)),
            short_routes: self.routes.short(),
            busy_mean_micros: micros(self.service.mean()),
            sheds: self.sheds,
        }
    }

    fn seat(&mut self, key: u32) -> Option<&mut Accounts> {
        self.seats.iter_mut().find(|seat| seat.worker.key == key)
    }

    /// Each worker does one thing at a time, so it counts as a thread.
    fn predicted_wait(&self, now: Instant) -> Duration {
        let head = self.queue.front();
        let head_late = head.map_or(Duration::ZERO, |head| {
            let waited = now.saturating_duration_since(head.since);
            waited.saturating_sub(head.predicted)
        });
        let workers = self.seats.len().max(1);
        predicted_wait(&Load {
            waiting: self.queue.len(),
            running: self.seats.iter().map(|seat| seat.running as usize).sum(),
            compute_threads: workers,
            threads_max: workers,
            backlog: Duration::ZERO,
            held: self.service.mean(),
            head_late,
        })
    }

    fn rejected(&self, reason: Reason, predicted: Duration) -> Rejected {
        Rejected {
            reason,
            retry_after: retry_after(predicted, self.queue_wait_max),
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
