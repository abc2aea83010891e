//! A stage under a virtual clock: lanes and admission as they are, threads, clients and time
//! simulated.
//!
//! Each seed makes up a stage, a flood of clients that ask again as soon as they have a response,
//! some of which leave while they wait, and a polite client that asks for at most half of its
//! share. Its waits are held against what its usage promises.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use super::admit::{self, Queued, State};
use super::builder::{Settings, StageSettings};
use super::lanes::{Ended, Entry, Lanes, Length, Spent};
use super::priority::{Priority, Rank};
use super::scheduler::{Bounds, View};
use super::submission::{RouteName, Submission};
use super::ticket::Terms;
use crate::admission::LATE_GRACE;
use crate::client::Client;

const SEEDS: u64 = 1_000;
/// The seeds of `make simulation`: a minute with optimisation.
const ALL_SEEDS: u64 = 10_000;
const MS: Duration = Duration::from_millis(1);
pub(super) const QUEUE_WAIT_MAX: Duration = Duration::from_millis(500);
/// The time before results count: all usages begin at zero, and the polite client's is the smaller
/// one only when the others have used their part.
const WARM_UP: Duration = Duration::from_secs(2);
const END: Duration = Duration::from_secs(4);
/// The time that a rejected client of the flood waits before it asks again.
const AGAIN_AFTER: Duration = Duration::from_millis(100);
/// The longest run there is.
const COST_MAX: Duration = Duration::from_millis(50);
const POLITE: usize = 0;

struct Asker {
    submission: Submission,
    cost_max: Duration,
    /// The polite client asks by the clock; the others when they have their response.
    interval: Option<Duration>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Asks { asker: usize },
    Ends { thread: usize },
}

struct Job {
    asker: usize,
    cost: Duration,
    came: Duration,
    /// The time at which its client leaves, if its turn has not come by then.
    leaves: Option<Duration>,
    terms: Terms,
    start: Instant,
}

impl Queued for Job {
    fn late(&self, now: Instant) -> Duration {
        let waited = now.saturating_duration_since(self.start + self.came);
        waited.saturating_sub(self.terms.predicted)
    }
}

#[derive(Debug, Default)]
struct Seen {
    polite: u32,
    refused: u32,
    longest: Duration,
    /// Waits of the polite client that were longer than the longest run.
    long: u32,
    flood_refused: u32,
    flood_longest: Duration,
    left: u32,
    runs: u32,
}

struct Simulation {
    random: fastrand::Rng,
    start: Instant,
    now: Duration,
    settings: Settings,
    askers: Vec<Asker>,
    lanes: Lanes<Job>,
    threads: Vec<Option<(usize, Spent)>>,
    events: BinaryHeap<Reverse<(Duration, u64, Event)>>,
    events_made: u64,
    seen: Seen,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let threads = random.u32(1..=4);
        let start = Instant::now();
        let askers = askers(&mut random, threads);
        let mut simulation = Self {
            random,
            start,
            now: Duration::ZERO,
            settings: settings(threads),
            askers,
            lanes: Lanes::new(QUEUE_WAIT_MAX, start),
            threads: (0..threads).map(|_| None).collect(),
            events: BinaryHeap::new(),
            events_made: 0,
            seen: Seen::default(),
        };
        for asker in 0..simulation.askers.len() {
            let delay = MS * simulation.random.u32(0..200);
            simulation.after(delay, Event::Asks { asker });
        }
        simulation
    }

    fn run(mut self) -> Seen {
        while let Some(Reverse((time, _, event))) = self.events.pop() {
            if time > END {
                break;
            }
            self.now = time;
            match event {
                Event::Asks { asker } => self.ask(asker),
                Event::Ends { thread } => self.end(thread),
            }
            self.begin_runs();
        }
        self.seen
    }

    fn after(&mut self, delay: Duration, event: Event) {
        self.events_made += 1;
        let entry = (self.now + delay, self.events_made, event);
        self.events.push(Reverse(entry));
    }

    fn ask(&mut self, index: usize) {
        let (now, asker) = (self.start + self.now, &self.askers[index]);
        let submission = asker.submission;
        let cost = asker.cost_max.mul_f64(0.5 + self.random.f64() / 2.0);
        let interval = asker.interval;
        if let Some(interval) = interval {
            self.after(interval, Event::Asks { asker: index });
        }
        let state = State {
            settings: &self.settings,
            held: cost,
            held_bytes: 0,
            abandoned: 0,
        };
        let mut view = View {
            waiting: self.lanes.len(),
            started: self.threads.iter().flatten().count(),
            lanes: &mut self.lanes,
            at_limit: &[],
        };
        match admit::admit(&mut view, &submission, 0, &state, now) {
            Ok(terms) => self.enter(index, submission, terms, cost),
            Err(_) if interval.is_some() => {
                self.seen.refused += u32::from(self.now > WARM_UP);
            }
            Err(_) => {
                self.seen.flood_refused += 1;
                self.after(AGAIN_AFTER, Event::Asks { asker: index });
            }
        }
    }

    fn enter(&mut self, asker: usize, submission: Submission, terms: Terms, cost: Duration) {
        let may_leave = asker != POLITE && self.random.u8(0..5) == 0;
        let leaves = may_leave.then(|| self.now + MS * self.random.u32(0..300));
        let job = Job {
            asker,
            cost,
            came: self.now,
            leaves,
            terms,
            start: self.start,
        };
        let entry = Entry {
            band: submission.band(),
            flow: submission.flow(),
            expected: terms.expected,
            advance: None,
            is_begun: false,
        };
        self.lanes.push(entry, job);
    }

    fn begin_runs(&mut self) {
        while let Some(thread) = self.threads.iter().position(Option::is_none) {
            let now = self.start + self.now;
            let Some(taken) = self.lanes.pop(|_| true, &[], now) else {
                return;
            };
            assert_eq!(taken.band.length(), Length::Long);
            let mut spent = Spent::nothing(&taken, now);
            let job = taken.turn.work;
            if self.is_worth_running(&job) {
                spent.used = job.cost;
                spent.run = Some(Ended {
                    wanted: job.cost,
                    stated: None,
                });
                self.seen.runs += 1;
                self.threads[thread] = Some((job.asker, spent));
                self.after(job.cost, Event::Ends { thread });
            } else {
                self.lanes.settle(&spent, now);
                self.after(AGAIN_AFTER, Event::Asks { asker: job.asker });
            }
        }
    }

    fn is_worth_running(&mut self, job: &Job) -> bool {
        if job.leaves.is_some_and(|leaves| leaves <= self.now) {
            self.seen.left += 1;
            return false;
        }
        let waited = self.now.saturating_sub(job.came);
        if job.asker != POLITE {
            self.seen.flood_longest = self.seen.flood_longest.max(waited);
        } else if job.came > WARM_UP {
            self.seen.polite += 1;
            self.seen.longest = self.seen.longest.max(waited);
            self.seen.long += u32::from(waited > COST_MAX);
        }
        let wait_max = job.terms.wait_max.expect("nobody is critical");
        waited <= wait_max + LATE_GRACE
    }

    fn end(&mut self, thread: usize) {
        let (asker, spent) = self.threads[thread].take().expect("it runs");
        self.lanes.settle(&spent, self.start + self.now);
        if asker != POLITE {
            self.after(Duration::ZERO, Event::Asks { asker });
        }
    }
}

/// The clients, the polite one first. The more contend with it, clients on its route or routes
/// beside it, the less it may ask for.
fn askers(random: &mut fastrand::Rng, threads: u32) -> Vec<Asker> {
    let (clients, routes) = (random.u32(1..=12), random.u32(1..=4));
    let cost_max = COST_MAX.mul_f64(0.1 + 0.9 * random.f64());
    let cost = cost_max.mul_f64(0.2 + 0.8 * random.f64());
    let contenders = f64::from(clients + 1).max(f64::from(routes + 1));
    let share = f64::from(threads) / contenders;
    let polite = Asker {
        submission: submission(random.u32(0..=routes), 0),
        cost_max: cost,
        interval: Some(cost.div_f64(share / 2.0)),
    };
    let mut askers = vec![polite];
    for client in 0..clients {
        let route = random.u32(1..=routes);
        for _ in 0..random.u32(1..=8) {
            askers.push(Asker {
                submission: submission(route, client + 1),
                cost_max,
                interval: None,
            });
        }
    }
    askers
}

pub(super) fn submission(route: u32, client: u32) -> Submission {
    Submission {
        rank: Rank::of(Priority::Normal),
        is_likely_short: false,
        client: Client::numbered(client.into()),
        route: RouteName {
            key: u64::from(route) + 1,
            ..RouteName::default()
        },
        stated: None,
    }
}

pub(super) fn settings(threads: u32) -> Settings {
    let threads = threads as usize;
    Settings {
        name: "simulated".to_owned(),
        bounds: Bounds {
            base: threads,
            compute_max: threads,
            threads_max: threads,
        },
        limits: StageSettings {
            queue_wait_max: QUEUE_WAIT_MAX,
            queue_bytes_max: usize::MAX,
            idle_timeout: Duration::MAX,
            ..StageSettings::default()
        },
    }
}

#[test]
fn who_asks_for_less_than_its_share_is_never_refused_and_hardly_waits() {
    simulate(SEEDS);
}

#[test]
#[ignore = "a minute; `make simulation` runs it"]
fn who_asks_for_less_than_its_share_hardly_waits_with_all_seeds() {
    simulate(ALL_SEEDS);
}

fn simulate(seeds: u64) {
    let mut all = Seen::default();
    for seed in 0..seeds {
        let seen = Simulation::new(seed).run();
        assert_eq!(seen.refused, 0, "seed {seed}: {seen:?}");
        assert!(seen.longest <= 4 * COST_MAX, "seed {seed}: {seen:?}");
        all.polite += seen.polite;
        all.long += seen.long;
        all.longest = all.longest.max(seen.longest);
        all.flood_refused += seen.flood_refused;
        all.flood_longest = all.flood_longest.max(seen.flood_longest);
        all.left += seen.left;
        all.runs += seen.runs;
    }
    // A client that has used less may still go before it, for a run each: rarely.
    assert!(all.long * 10_000 <= all.polite, "{all:?}");
    assert!(all.polite > 10_000 && all.flood_refused > 10_000 && all.left > 10_000);
}
