//! The engine against real servers on this machine.

mod failures;
mod http2;
mod http2_server;
mod loops;
mod server;
mod websocket;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use super::work;
use crate::plan::{Pace, Phase, Protocol, Schedule, StreamPlan};
use crate::record::{ByRate, FailureKind, FirstResponse, Recorder, RecorderSettings, Tally};
use crate::run::{Address, Clock, Ending, Endpoint, PathTurns, Share, Stop};

/// The result of a run of one thread.
struct Outcome {
    ending: Ending,
    tally: Tally,
    first: Option<FirstResponse>,
    batches: usize,
}

impl Outcome {
    fn failures(&self) -> Vec<(FailureKind, u64)> {
        self.tally.failures.iter().collect()
    }

    fn responses(&self) -> u64 {
        self.tally.responses()
    }
}

/// Batches that a test may yield before they are read.
const BATCHES_MAX: usize = 10_000;
const INTERVAL_NS: u64 = 10_000_000;

fn plan(protocol: Protocol) -> StreamPlan {
    let target = "http://localhost/".parse().expect("a URL");
    StreamPlan {
        protocol,
        keep_alive: true,
        timeout: Duration::from_secs(20),
        ..StreamPlan::new(target)
    }
}

fn with_requests(mut plan: StreamPlan, requests: u64) -> StreamPlan {
    plan.end.requests = Some(requests);
    plan
}

fn with_rate(mut plan: StreamPlan, rate: f64, duration: Duration) -> StreamPlan {
    plan.end.requests = None;
    plan.pace = Pace::Open(Schedule::constant(rate, duration).expect("a schedule"));
    plan
}

/// As [`with_rate`], for plans that send all: requests that a loaded machine sends late are sent,
/// because the schedule goes on with nothing that is due.
fn with_rate_and_patience(plan: StreamPlan, rate: f64, duration: Duration) -> StreamPlan {
    let phase = |rate, duration| Phase {
        from: rate,
        to: rate,
        duration,
    };
    let phases = vec![phase(rate, duration), phase(0.0, Duration::from_mins(1))];
    let mut plan = with_rate(plan, rate, duration);
    plan.pace = Pace::Open(Schedule::new(phases).expect("a schedule"));
    plan
}

fn endpoint(url: &str, address: SocketAddr) -> Endpoint {
    Endpoint {
        target: url.parse().expect("a URL"),
        address: Address::Tcp(address),
        tls: None,
    }
}

/// Runs a plan against one server.
fn run(plan: &StreamPlan, address: SocketAddr) -> Outcome {
    run_to(plan, vec![endpoint("http://localhost/", address)])
}

fn run_to(plan: &StreamPlan, endpoints: Vec<Endpoint>) -> Outcome {
    run_until(plan, endpoints, Stop::default())
}

fn run_until(plan: &StreamPlan, endpoints: Vec<Endpoint>, stop: Stop) -> Outcome {
    let (full, batches) = sync_channel(BATCHES_MAX);
    let (_returned, empty) = sync_channel(1);
    let recorder = Recorder::new(RecorderSettings {
        length: std::sync::Arc::default(),
        stream: 0,
        thread: 0,
        interval_ns: INTERVAL_NS,
        records_max: 0,
        variable_length: false,
        by_rate: ByRate::default(),
        full,
        empty,
    });
    let paths = plan.paths.clone().map(PathTurns::new).map(Arc::new);
    let share = Share::of(plan, 0, paths, Clock::start(), stop);
    let ending = work(share, endpoints, recorder);
    let mut outcome = Outcome {
        ending,
        tally: Tally::default(),
        first: None,
        batches: 0,
    };
    for batch in batches {
        outcome.tally.add(&batch.tally);
        outcome.first = outcome.first.or(batch.first.map(|first| *first));
        outcome.batches += 1;
    }
    outcome
}
