//! A stream as a JSON object.

use std::collections::BTreeMap;

use serde::Serialize;

use super::times::{Brief, Percentiles};
use crate::plan::{Pace, Phase, Protocol, StreamPlan};
use crate::record::{FailureKind, Failures, Point, Tally};
use crate::run::StreamMeasurement;

#[derive(Serialize)]
pub(super) struct Stream<'a> {
    name: &'a str,
    /// The URL of the first target.
    url: String,
    elapsed_seconds: f64,
    plan: Plan<'a>,
    requests: Requests,
    connections: Connections,
    bytes: Bytes,
    answers_per_second: f64,
    statuses: BTreeMap<u16, u64>,
    failures: BTreeMap<&'static str, Failure<'a>>,
    latency_ns: Percentiles,
    good_latency_ns: Percentiles,
    bad_latency_ns: Percentiles,
    timed_out_ns: Percentiles,
    service_ns: Percentiles,
    connect_ns: Percentiles,
    waiting_ns: Percentiles,
    generator_lag_ns: Percentiles,
    timeline: Vec<Stretch>,
}

#[derive(Serialize)]
struct Plan<'a> {
    urls: Vec<String>,
    /// Number of paths that took turns in the place of the URL's; null without `--url-file`.
    paths: Option<usize>,
    method: &'a str,
    body_bytes: usize,
    protocol: &'static str,
    r#loop: &'static str,
    phases: Vec<PlanPhase>,
    requests: Option<u64>,
    duration_seconds: Option<f64>,
    connections: u32,
    keep_alive: bool,
    in_flight_max: u32,
    timeout_seconds: f64,
    threads: u32,
    spin: bool,
}

#[derive(Serialize)]
struct PlanPhase {
    from_per_second: f64,
    to_per_second: f64,
    duration_seconds: f64,
}

#[derive(Serialize)]
struct Requests {
    due: u64,
    sent: u64,
    answered: u64,
    failed: u64,
    unfinished: u64,
    late_for_connection: u64,
    late_by_generator: u64,
    other_length: u64,
    unasked: u64,
    missed_share: f64,
}

#[derive(Serialize)]
struct Connections {
    established: u64,
    reused: u64,
}

#[derive(Serialize)]
struct Bytes {
    sent: u64,
    received: u64,
    body: u64,
}

#[derive(Serialize)]
struct Failure<'a> {
    count: u64,
    first: &'a str,
    explanation: &'static str,
}

#[derive(Serialize)]
struct Stretch {
    begin_seconds: f64,
    length_seconds: f64,
    due: u64,
    sent: u64,
    good: u64,
    bad: u64,
    failed: u64,
    asked_per_second: f64,
    answered_per_second: f64,
    latency_ns: Brief,
}

impl<'a> Stream<'a> {
    pub(super) fn of(stream: &'a StreamMeasurement) -> Self {
        let tally = &stream.tally;
        Self {
            name: &stream.plan.name,
            url: stream.plan.targets[0].to_string(),
            elapsed_seconds: stream.elapsed.as_secs_f64(),
            plan: Plan::of(&stream.plan),
            requests: Requests::of(stream),
            connections: Connections::of(tally),
            bytes: Bytes::of(tally),
            answers_per_second: stream.requests_per_second(),
            statuses: tally.statuses().collect(),
            failures: failures(&tally.failures),
            latency_ns: Percentiles::of(&tally.latency()),
            good_latency_ns: Percentiles::of(&tally.good),
            bad_latency_ns: Percentiles::of(&tally.bad),
            timed_out_ns: Percentiles::of(&tally.timed_out),
            service_ns: Percentiles::of(&tally.processing),
            connect_ns: Percentiles::of(&tally.connect),
            waiting_ns: Percentiles::of(&tally.waiting),
            generator_lag_ns: Percentiles::of(&tally.lag),
            timeline: stretches(stream),
        }
    }
}

impl<'a> Plan<'a> {
    fn of(plan: &'a StreamPlan) -> Self {
        let (kind, phases) = match &plan.pace {
            Pace::Closed => ("closed", &[][..]),
            Pace::Open(schedule) => ("open", schedule.phases()),
        };
        Self {
            urls: plan.targets.iter().map(ToString::to_string).collect(),
            paths: plan.paths.as_ref().map(|paths| paths.count()),
            method: &plan.request.method,
            body_bytes: plan.request.body.len(),
            protocol: protocol(plan.protocol),
            r#loop: kind,
            phases: phases.iter().map(PlanPhase::of).collect(),
            requests: plan.end.requests.filter(|_| !plan.is_open_loop()),
            duration_seconds: plan.duration().map(|duration| duration.as_secs_f64()),
            connections: plan.connections,
            keep_alive: plan.keep_alive,
            in_flight_max: plan.in_flight_max,
            timeout_seconds: plan.timeout.as_secs_f64(),
            threads: plan.threads,
            spin: plan.spin,
        }
    }
}

fn protocol(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Http1 => "http/1.1",
        Protocol::Http2 => "h2",
        Protocol::WebSocket => "websocket",
    }
}

impl PlanPhase {
    fn of(phase: &Phase) -> Self {
        Self {
            from_per_second: phase.from,
            to_per_second: phase.to,
            duration_seconds: phase.duration.as_secs_f64(),
        }
    }
}

impl Requests {
    fn of(stream: &StreamMeasurement) -> Self {
        let tally = &stream.tally;
        Self {
            due: tally.counts.due,
            sent: tally.counts.sent,
            answered: tally.responses(),
            failed: tally.failures.total(),
            unfinished: stream.unfinished,
            late_for_connection: tally.counts.late_for_connection,
            late_by_generator: tally.counts.late_by_generator,
            other_length: tally.counts.other_length,
            unasked: tally.counts.unasked,
            missed_share: stream.missed(),
        }
    }
}

impl Connections {
    fn of(tally: &Tally) -> Self {
        Self {
            established: tally.counts.connections,
            reused: tally.counts.reused,
        }
    }
}

impl Bytes {
    fn of(tally: &Tally) -> Self {
        Self {
            sent: tally.counts.sent_bytes,
            received: tally.counts.received_bytes,
            body: tally.counts.body_bytes,
        }
    }
}

fn failures(failures: &Failures) -> BTreeMap<&'static str, Failure<'_>> {
    let entry = |(kind, count): (FailureKind, u64)| {
        let failure = Failure {
            count,
            first: failures.detail(kind).unwrap_or_default(),
            explanation: kind.explanation(),
        };
        (kind.name(), failure)
    };
    failures.iter().map(entry).collect()
}

fn stretches(stream: &StreamMeasurement) -> Vec<Stretch> {
    let is_open_loop = stream.plan.is_open_loop();
    let points = stream.timeline.points().iter();
    points
        .map(|point| Stretch::of(point, is_open_loop))
        .collect()
}

impl Stretch {
    fn of(point: &Point, is_open_loop: bool) -> Self {
        Self {
            begin_seconds: point.begin.as_secs_f64(),
            length_seconds: point.length.as_secs_f64(),
            due: point.due,
            sent: point.sent,
            good: point.good,
            bad: point.bad,
            failed: point.failed,
            asked_per_second: point.asked_rate(is_open_loop),
            answered_per_second: point.response_rate(),
            latency_ns: Brief::of(&point.latency()),
        }
    }
}
