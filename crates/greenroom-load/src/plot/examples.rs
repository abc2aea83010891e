//! Synthetic runs for tests of figures: each is exact, and the same every time.

use std::time::{Duration, SystemTime};

use crate::plan::{Pace, Phase, Schedule, StreamPlan, Target};
use crate::record::{ByRate, Ended, FailureKind, ResponseRecord, Tally, Timeline};
use crate::run::{Measurement, StreamMeasurement};
use crate::verdict::{ServerUsage, ThreadUsage};

const SECOND: u64 = 1_000_000_000;

/// The outcome of a request: its service time and latency in nanoseconds, or its failure.
pub(super) enum Outcome {
    Responded {
        status: u16,
        service: u64,
        latency: u64,
    },
    Failed(FailureKind, u64),
}

pub(super) fn good(latency: u64) -> Outcome {
    Outcome::Responded {
        status: 200,
        service: latency,
        latency,
    }
}

pub(super) fn phase(from: f64, to: f64, seconds: u64) -> Phase {
    Phase {
        from,
        to,
        duration: Duration::from_secs(seconds),
    }
}

/// Returns a stream that sends by schedule; `outcome` is called for each request with its intended
/// time.
pub(super) fn open(
    name: &str,
    phases: Vec<Phase>,
    mut outcome: impl FnMut(u64) -> Outcome,
) -> StreamMeasurement {
    let schedule = Schedule::new(phases).expect("a valid schedule");
    let mut events = Vec::new();
    for due in schedule.arrivals(0, 1) {
        let outcome = outcome(due);
        let end = due + duration(&outcome);
        events.push((due, end, outcome));
    }
    let mut plan = plan(name);
    plan.pace = Pace::Open(schedule);
    plan.connections = 1000;
    collected(plan, &events)
}

/// Returns a stream of so many requests, one after the other.
pub(super) fn closed(
    name: &str,
    requests: u64,
    mut outcome: impl FnMut(u64) -> Outcome,
) -> StreamMeasurement {
    let mut now = 0;
    let mut events = Vec::new();
    for _ in 0..requests {
        let outcome = outcome(now);
        let end = now + duration(&outcome);
        events.push((now, end, outcome));
        now = end;
    }
    collected(plan(name), &events)
}

fn plan(name: &str) -> StreamPlan {
    let target: Target = "http://127.0.0.1:5000/".parse().expect("a valid URL");
    StreamPlan {
        name: name.to_owned(),
        ..StreamPlan::new(target)
    }
}

fn duration(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Responded { latency, .. } => *latency,
        Outcome::Failed(_, lasted) => *lasted,
    }
}

fn collected(plan: StreamPlan, events: &[(u64, u64, Outcome)]) -> StreamMeasurement {
    let end = events.iter().map(|(_, end, _)| *end).max().unwrap_or(0);
    let mut all = Tally::default();
    let mut by_rate = ByRate::of(&plan.pace);
    for (due, done, outcome) in events {
        let ended = match outcome {
            Outcome::Responded { status, .. } if *status < Tally::BAD_FROM => {
                Ended::Good(done - due)
            }
            Outcome::Failed(kind, _) if kind.has_latency() => Ended::TimedOut(done - due),
            Outcome::Responded { .. } | Outcome::Failed(..) => Ended::Bad,
        };
        by_rate.record(*due, ended);
    }
    let mut timeline = Timeline::new(Duration::from_secs(1));
    for second in 0..=end / SECOND {
        let begin = second * SECOND;
        let interval = begin..(begin + SECOND).min(end + 1);
        let mut tally = Tally::default();
        for (due, done, outcome) in events {
            if interval.contains(due) {
                tally.counts.sent += 1;
                tally.counts.due += u64::from(plan.is_open_loop());
            }
            if interval.contains(done) {
                note(&mut tally, *due, *done, outcome);
            }
        }
        let length = Duration::from_nanos(interval.end - begin);
        timeline.push(Duration::from_nanos(begin), length, &tally);
        all.add(&tally);
    }
    StreamMeasurement {
        plan,
        elapsed: Duration::from_nanos(end),
        tally: all,
        timeline,
        by_rate,
        first: None,
        records: Vec::new(),
        in_flight_most: 0,
        unfinished: 0,
    }
}

fn note(tally: &mut Tally, due: u64, done: u64, outcome: &Outcome) {
    match outcome {
        Outcome::Responded {
            status, service, ..
        } => tally.responded(&ResponseRecord {
            status: *status,
            intended: due,
            sent: done - service,
            first_byte: done,
            done,
            connect: None,
            body_bytes: 5,
        }),
        Outcome::Failed(kind, lasted) => tally.failed(*kind, *lasted, || {
            "Connection refused (os error 111)".to_owned()
        }),
    }
}

pub(super) fn measurement(streams: Vec<StreamMeasurement>) -> Measurement {
    Measurement {
        started: SystemTime::UNIX_EPOCH,
        elapsed: streams
            .iter()
            .map(|one| one.elapsed)
            .max()
            .unwrap_or_default(),
        interrupted: false,
        gave_up: false,
        generator: vec![ThreadUsage {
            stream: 0,
            user: Duration::from_millis(130),
            system: Duration::from_millis(420),
            elapsed: Duration::from_secs(20),
            ..ThreadUsage::default()
        }],
        server: Some(ServerUsage {
            processes: 2,
            user: Duration::from_millis(600),
            system: Duration::from_millis(400),
            rss_bytes_max: 25 << 20,
            threads_max: 5,
            ..ServerUsage::default()
        }),
        streams,
    }
}

/// Returns a time around `middle` milliseconds with a long tail, in nanoseconds.
fn spread(random: &mut fastrand::Rng, middle: f64) -> u64 {
    let normal: f64 = (0..6).map(|_| random.f64() - 0.5).sum();
    let tail = if random.f64() < 0.01 { 4.0 } else { 1.0 };
    nanoseconds(middle * (normal * 0.5).exp() * tail / 1e3)
}

fn nanoseconds(seconds: f64) -> u64 {
    let nanoseconds = Duration::from_secs_f64(seconds).as_nanos();
    nanoseconds.try_into().expect("far below 500 years")
}

/// Returns a ramp of 0 to 1,000 a second within 30 s, to a server that is at its limit at
/// `capacity`.
pub(super) fn ramp(name: &str, base_ms: f64, capacity: f64) -> StreamMeasurement {
    let mut random = fastrand::Rng::with_seed(7);
    let mut backlog = 0.0_f64;
    let mut last = 0;
    open(name, vec![phase(0.0, 1000.0, 30)], move |due| {
        let passed = Duration::from_nanos(due - last).as_secs_f64();
        last = due;
        backlog = (backlog + 1.0 - passed * capacity).max(0.0);
        let service = spread(&mut random, base_ms);
        let waited = nanoseconds(backlog / capacity);
        if backlog > capacity * 3.5 && random.f64() < 0.3 {
            return Outcome::Failed(FailureKind::Timeout, 3 * SECOND);
        }
        Outcome::Responded {
            status: 200,
            service,
            latency: service + waited,
        }
    })
}

/// Returns a constant rate for `seconds`.
pub(super) fn steady(name: &str, rate: f64, seconds: u64, middle_ms: f64) -> StreamMeasurement {
    let mut random = fastrand::Rng::with_seed(3);
    open(name, vec![phase(rate, rate, seconds)], move |_| {
        good(spread(&mut random, middle_ms))
    })
}

/// Returns 1,000 a second for 20 s to a server that stands still for 1 s in every 5 s, and else
/// responds in 0.1 ms.
pub(super) fn stall() -> StreamMeasurement {
    let phases = vec![phase(1000.0, 1000.0, 20)];
    open("stalling server", phases, |due| {
        let within = due % (5 * SECOND);
        let is_standing = within >= 4 * SECOND;
        let waited = if is_standing { 5 * SECOND - within } else { 0 };
        Outcome::Responded {
            status: 200,
            service: 100_000,
            latency: 100_000 + waited,
        }
    })
}

/// Returns a stream with responses of status 503 for a while.
pub(super) fn shedding() -> StreamMeasurement {
    let mut random = fastrand::Rng::with_seed(5);
    open("shedding", vec![phase(300.0, 300.0, 12)], move |due| {
        let is_over = (4..8).contains(&(due / SECOND));
        let service = spread(&mut random, 2.0);
        Outcome::Responded {
            status: if is_over { 503 } else { 200 },
            service,
            latency: service,
        }
    })
}

pub(super) fn refused() -> StreamMeasurement {
    open("nobody there", vec![phase(50.0, 50.0, 8)], |_| {
        Outcome::Failed(FailureKind::Refused, 50_000)
    })
}

/// Returns a stream of one request.
pub(super) fn tiny() -> StreamMeasurement {
    closed("http://127.0.0.1:5000/", 1, |_| good(432_100))
}

/// Returns a stream without any request.
pub(super) fn nothing() -> StreamMeasurement {
    closed("nothing", 0, |_| good(1))
}
