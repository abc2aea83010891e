//! A stage under a virtual clock whose runs wait: each computes for a moment, waits (for a
//! database, say), and computes again. A polite client asks the same of it beside a crowd.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use super::admit::{self, Queued, State};
use super::builder::Settings;
use super::lanes::{Ended, Entry, Lanes, Spent};
use super::scheduler::View;
use super::simulation::{QUEUE_WAIT_MAX, settings, submission};
use super::ticket::Terms;

const MS: Duration = Duration::from_millis(1);
const THREADS: u32 = 2;
const ROUTE: u32 = 0;
/// The poll in which a run begins to wait.
const FIRST: Duration = Duration::from_micros(30);
/// The time that it computes after its waits, all together.
const COMPUTED: Duration = Duration::from_micros(900);
const WAIT: Duration = Duration::from_millis(50);
/// Runs that both threads can end in a second.
const CAPACITY: f64 = 2.0 / 0.000_930;

const END: Duration = Duration::from_secs(6);
const POLITE_ASKS_EVERY: Duration = Duration::from_millis(20);

/// The crowd.
#[derive(Clone, Copy, Debug)]
enum Load {
    /// So many, all of one client, who ask again when they have their response.
    Closed(u32),
    /// The same, each a client of its own.
    ClosedOfMany(u32),
    /// One client, so much above what can be done.
    Flood(f64),
    /// The same, but each time a client that was never seen before.
    FloodOfNew(f64),
}

/// 0 is the polite one.
type ClientNumber = u32;

const POLITE: usize = 0;
const CROWD: usize = 1;

struct Run {
    client: ClientNumber,
    came: Duration,
    began: Duration,
    terms: Terms,
    waits_left: u32,
    used: Duration,
}

struct Job(Run, Instant);

impl Queued for Job {
    fn late(&self, now: Instant) -> Duration {
        let waited = now.saturating_duration_since(self.1 + self.0.came);
        waited.saturating_sub(self.0.terms.predicted)
    }
}

enum Event {
    Asks(ClientNumber),
    Woken(Run),
    Polled(usize, Run, Spent),
}

/// The results of the second half.
#[derive(Debug, Default)]
struct Seen {
    ended: u32,
    refused: u32,
    /// The longest time from a begin to the end, and from when a run came to its end, for the
    /// polite client and for the crowd.
    run: [Duration; 2],
    response: [Duration; 2],
    polite_ended: u32,
    polite_refused: u32,
    in_process: u32,
    in_process_most: u32,
}

impl Seen {
    /// Returns the runs that ended in a second.
    fn rate(&self) -> f64 {
        f64::from(self.ended) / (END / 2).as_secs_f64()
    }
}

struct Simulation {
    load: Load,
    waits: u32,
    /// Until then nobody who waits is woken.
    stalled: Duration,
    settings: Settings,
    start: Instant,
    now: Duration,
    lanes: Lanes<Job>,
    is_working: [bool; THREADS as usize],
    events: Vec<Option<Event>>,
    due: BinaryHeap<Reverse<(Duration, usize)>>,
    seen: Seen,
}

impl Simulation {
    fn new(load: Load, waits: u32) -> Self {
        let start = Instant::now();
        Self {
            load,
            waits,
            stalled: Duration::ZERO,
            settings: settings(THREADS),
            start,
            now: Duration::ZERO,
            lanes: Lanes::new(QUEUE_WAIT_MAX, start),
            is_working: [false; THREADS as usize],
            events: Vec::new(),
            due: BinaryHeap::new(),
            seen: Seen::default(),
        }
    }

    fn run(mut self) -> Seen {
        self.after(Duration::ZERO, Event::Asks(0));
        let crowd: Vec<_> = match self.load {
            Load::Closed(number) => vec![1; number as usize],
            Load::ClosedOfMany(number) => (1..=number).collect(),
            Load::Flood(_) | Load::FloodOfNew(_) => vec![1],
        };
        for client in crowd {
            self.after(Duration::ZERO, Event::Asks(client));
        }
        while let Some(Reverse((time, index))) = self.due.pop() {
            if time > END {
                break;
            }
            self.now = time;
            match self.events[index].take().expect("each comes once") {
                Event::Asks(client) => self.ask(client),
                Event::Woken(run) => self.push(run, true),
                Event::Polled(thread, run, spent) => self.polled(thread, run, &spent),
            }
            self.begin_runs();
        }
        self.seen
    }

    fn after(&mut self, delay: Duration, event: Event) {
        self.due
            .push(Reverse((self.now + delay, self.events.len())));
        self.events.push(Some(event));
    }

    fn ask(&mut self, client: ClientNumber) {
        match self.load {
            _ if client == 0 => self.after(POLITE_ASKS_EVERY, Event::Asks(0)),
            Load::Flood(factor) => self.after(interval(factor), Event::Asks(client)),
            Load::FloodOfNew(factor) => self.after(interval(factor), Event::Asks(client + 1)),
            Load::Closed(_) | Load::ClosedOfMany(_) => {}
        }
        let submission = submission(ROUTE, client);
        let state = State {
            settings: &self.settings,
            held: COMPUTED / 2,
            held_bytes: 0,
            abandoned: 0,
        };
        let mut view = View {
            waiting: self.lanes.len(),
            started: self.is_working.iter().filter(|works| **works).count(),
            lanes: &mut self.lanes,
            at_limit: &[],
        };
        match admit::admit(&mut view, &submission, 0, &state, self.start + self.now) {
            Ok(terms) => {
                let run = Run {
                    client,
                    came: self.now,
                    began: Duration::ZERO,
                    terms,
                    waits_left: self.waits,
                    used: Duration::ZERO,
                };
                self.push(run, false);
            }
            Err(_) => self.refuse(client),
        }
    }

    fn refuse(&mut self, client: ClientNumber) {
        if is_counted(self.now) {
            self.seen.refused += 1;
            self.seen.polite_refused += u32::from(client == 0);
        }
        self.ask_again(client, 100 * MS);
    }

    fn ask_again(&mut self, client: ClientNumber, pause: Duration) {
        let is_closed = matches!(self.load, Load::Closed(_) | Load::ClosedOfMany(_));
        if client > 0 && is_closed {
            self.after(pause, Event::Asks(client));
        }
    }

    fn push(&mut self, run: Run, is_begun: bool) {
        let entry = Entry {
            band: submission(ROUTE, run.client).band(),
            flow: submission(ROUTE, run.client).flow(),
            expected: run.terms.expected.saturating_sub(run.used),
            advance: None,
            is_begun,
        };
        self.lanes.push(entry, Job(run, self.start));
    }

    fn begin_runs(&mut self) {
        while let Some(thread) = self.is_working.iter().position(|works| !works) {
            let now = self.start + self.now;
            let Some(taken) = self.lanes.pop(|_| true, &[], now) else {
                return;
            };
            let mut spent = Spent::nothing(&taken, now);
            let Job(mut run, _) = taken.turn.work;
            let waited = self.now.saturating_sub(run.came);
            if !taken.is_begun && run.terms.wait_max.is_some_and(|max| waited > max) {
                self.lanes.settle(&spent, now);
                self.refuse(run.client);
                continue;
            }
            if taken.is_begun {
                spent.used = COMPUTED / self.waits;
            } else {
                spent.used = FIRST;
                run.began = self.now;
                self.seen.in_process += 1;
            }
            run.used += spent.used;
            if run.waits_left == 0 {
                spent.run = Some(Ended {
                    wanted: run.used,
                    stated: None,
                });
            }
            if is_counted(self.now) {
                self.seen.in_process_most = self.seen.in_process_most.max(self.seen.in_process);
            }
            self.is_working[thread] = true;
            self.after(spent.used, Event::Polled(thread, run, spent));
        }
    }

    fn polled(&mut self, thread: usize, mut run: Run, spent: &Spent) {
        self.is_working[thread] = false;
        self.lanes.settle(spent, self.start + self.now);
        if run.waits_left > 0 {
            run.waits_left -= 1;
            let stalled = self.stalled.saturating_sub(self.now);
            self.after(stalled + WAIT, Event::Woken(run));
            return;
        }
        self.seen.in_process -= 1;
        self.seen.ended += u32::from(is_counted(self.now));
        self.seen.polite_ended += u32::from(is_counted(self.now) && run.client == 0);
        if is_counted(run.came) {
            let whose = if run.client == 0 { POLITE } else { CROWD };
            self.seen.run[whose] = self.seen.run[whose].max(self.now.saturating_sub(run.began));
            self.seen.response[whose] =
                self.seen.response[whose].max(self.now.saturating_sub(run.came));
        }
        self.ask_again(run.client, MS / 10);
    }
}

fn is_counted(time: Duration) -> bool {
    time > END / 2
}

/// Returns the time between two requests of a flood of so many times what can be done.
fn interval(factor: f64) -> Duration {
    Duration::from_secs_f64(1.0 / CAPACITY / factor)
}

/// With begun work always first they all wait at one time and all compute at another, and half as
/// many runs end.
#[test]
fn some_compute_while_others_wait() {
    for load in [Load::Closed(100), Load::ClosedOfMany(100)] {
        for waits in [1, 3] {
            let seen = Simulation::new(load, waits).run();
            let alone = WAIT * waits + FIRST + COMPUTED;
            assert!(
                seen.rate() > 95.0 / alone.as_secs_f64(),
                "{load:?}: {seen:?}"
            );
            assert!(seen.response[CROWD] < alone + 8 * MS, "{load:?}: {seen:?}");
        }
    }
}

#[test]
fn a_crowd_of_one_client_delays_that_client_only() {
    for load in [Load::Closed(1_000), Load::Flood(1.5)] {
        for waits in [1, 3] {
            let seen = Simulation::new(load, waits).run();
            assert_eq!(seen.polite_refused, 0, "{load:?}: {seen:?}");
            assert!(seen.polite_ended > 140, "{load:?}: {seen:?}");
            let most = WAIT * waits + 5 * MS;
            assert!(seen.response[POLITE] < most, "{load:?}: {seen:?}");
            let most = WAIT * waits + QUEUE_WAIT_MAX;
            assert!(seen.response[CROWD] < most, "{load:?}: {seen:?}");
        }
    }
}

#[test]
fn under_overload_as_many_begin_as_end_and_who_has_begun_ends_soon() {
    for (load, waits) in [
        (Load::Flood(1.5), 1),
        (Load::Flood(1.5), 3),
        (Load::FloodOfNew(1.5), 3),
    ] {
        let seen = Simulation::new(load, waits).run();
        assert!(seen.rate() > 0.95 * CAPACITY, "{load:?}: {seen:?}");
        let most = WAIT * waits + 2 * QUEUE_WAIT_MAX;
        assert!(seen.run[CROWD] < most, "{load:?}: {seen:?}");
        let most = CAPACITY * most.as_secs_f64();
        assert!(f64::from(seen.in_process_most) < most, "{load:?}: {seen:?}");
    }
}

#[test]
fn what_a_stall_has_heaped_up_is_worked_off() {
    for waits in [1, 3] {
        let mut simulation = Simulation::new(Load::Flood(1.2), waits);
        simulation.stalled = Duration::from_secs(1);
        let seen = simulation.run();
        assert!(f64::from(seen.in_process) < CAPACITY, "{seen:?}");
        assert!(seen.response[CROWD] < 3 * QUEUE_WAIT_MAX, "{seen:?}");
    }
}
