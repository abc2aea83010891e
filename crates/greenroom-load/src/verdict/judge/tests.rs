use std::time::{Duration, SystemTime};

use super::{Limit, Verdict};
use crate::plan::{Pace, Schedule, StreamPlan};
use crate::record::{ByRate, FailureKind, Tally, Timeline};
use crate::run::{Measurement, StreamMeasurement};
use crate::verdict::{ServerUsage, ThreadUsage};

const SECOND: Duration = Duration::from_secs(1);
const US: u64 = 1000;

/// Returns a run of 10 s with 10,000 responses of 2 ms, one thread that ran a third of the time,
/// and no server seen.
fn closed() -> Measurement {
    let plan = StreamPlan::new("http://127.0.0.1:1/".parse().expect("a URL"));
    let mut tally = Tally::default();
    tally.counts.sent = 10_000;
    tally.good.record_many(2000 * US, 10_000);
    let stream = StreamMeasurement {
        plan,
        elapsed: 10 * SECOND,
        tally,
        timeline: Timeline::new(SECOND),
        by_rate: ByRate::default(),
        first: None,
        records: Vec::new(),
        in_flight_most: 0,
        unfinished: 0,
    };
    Measurement {
        started: SystemTime::UNIX_EPOCH,
        elapsed: 10 * SECOND,
        interrupted: false,
        gave_up: false,
        streams: vec![stream],
        generator: vec![thread(0.33)],
        server: None,
    }
}

/// Returns the same at 1,000/s.
fn open() -> Measurement {
    let mut run = closed();
    let stream = &mut run.streams[0];
    let schedule = Schedule::constant(1000.0, 10 * SECOND).expect("a schedule");
    stream.plan.pace = Pace::Open(schedule);
    stream.tally.counts.due = 10_000;
    stream.tally.lag.record_many(60 * US, 10_000);
    run
}

fn thread(busy: f64) -> ThreadUsage {
    ThreadUsage {
        stream: 0,
        user: (5 * SECOND).mul_f64(busy),
        system: (5 * SECOND).mul_f64(busy),
        waited: Duration::ZERO,
        elapsed: 10 * SECOND,
    }
}

fn server(cores_used: f64, cores: u32) -> ServerUsage {
    ServerUsage {
        elapsed: 10 * SECOND,
        processes: 1,
        user: (10 * SECOND).mul_f64(cores_used),
        cores,
        ..ServerUsage::default()
    }
}

fn judged(run: &Measurement, limit: Limit, words: &[&str]) {
    let verdict = Verdict::of(run);
    let text = verdict.sentences.join(" ");
    assert_eq!(verdict.limit, limit, "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} in {text}");
    }
}

#[test]
fn a_thread_without_time_left_is_the_limit() {
    let mut run = closed();
    run.generator.push(thread(0.95));
    judged(&run, Limit::Generator, &["95 %", "--threads"]);
    run.server = Some(server(0.4, 1));
    judged(&run, Limit::Generator, &["95 %"]);
}

#[test]
fn polling_without_pause_is_no_saturation() {
    let mut run = open();
    run.generator = vec![thread(1.0)];
    run.streams[0].plan.spin = true;
    judged(&run, Limit::Nobody, &[]);
}

#[test]
fn both_may_be_saturated() {
    let mut run = closed();
    run.generator = vec![thread(0.97)];
    run.server = Some(server(0.95, 1));
    judged(&run, Limit::Both, &["97 %", "0.95 of the one core"]);
}

#[test]
fn a_server_is_held_to_the_cores_that_it_may_use() {
    let mut run = closed();
    run.server = Some(server(0.95, 1));
    judged(&run, Limit::Server, &["0.95 of the one core"]);
    run.server = Some(server(0.95, 2));
    judged(&run, Limit::Nobody, &["33 %", "0.95 of the 2 cores", "-c"]);
    run.server = Some(server(1.85, 2));
    judged(&run, Limit::Server, &["1.85 of the 2 cores"]);
}

#[test]
fn a_server_may_be_limited_by_one_thread() {
    let mut run = closed();
    run.server = Some(ServerUsage {
        busiest_thread: (10 * SECOND).mul_f64(0.98),
        ..server(1.0, 4)
    });
    judged(&run, Limit::Server, &["One thread of the server ran 98 %"]);
}

#[test]
fn a_server_elsewhere_leaves_a_closed_loop_unknown() {
    judged(&closed(), Limit::Unknown, &["--server-pid"]);
}

#[test]
fn a_schedule_that_was_kept_limits_nobody() {
    judged(&open(), Limit::Nobody, &["33 %"]);
}

#[test]
fn our_own_lag_is_reported_when_it_is_a_tenth_of_the_latency() {
    let mut run = open();
    let tally = &mut run.streams[0].tally;
    tally.good.clear();
    tally.good.record_many(160 * US, 10_000);
    judged(&run, Limit::Generator, &["median", "60 us late", "--spin"]);
    let tally = &mut run.streams[0].tally;
    tally.lag.clear();
    // A lag that a sleeping thread cannot avoid.
    tally.lag.record_many(17 * US, 10_000);
    judged(&run, Limit::Nobody, &[]);
}

#[test]
fn lag_in_the_tail_counts_only_when_the_tail_is_known() {
    let mut run = open();
    let tally = &mut run.streams[0].tally;
    tally.lag.record_many(900 * US, 400);
    judged(&run, Limit::Generator, &["at the p99"]);
    let tally = &mut run.streams[0].tally;
    tally.good.clear();
    tally.good.record_many(2000 * US, 100);
    judged(&run, Limit::Nobody, &[]);
}

#[test]
fn a_stalling_server_is_not_blamed_on_our_lag() {
    let mut run = open();
    let tally = &mut run.streams[0].tally;
    tally.good.record_many(950_000 * US, 1000);
    tally.lag.record_many(300 * US, 300);
    judged(&run, Limit::Nobody, &[]);
}

#[test]
fn late_requests_are_ours_when_a_connection_was_free() {
    let mut run = open();
    run.streams[0].tally.counts.late_by_generator = 11;
    judged(&run, Limit::Generator, &["11 of 10000", "0.11 %"]);
    let counts = &mut run.streams[0].tally.counts;
    counts.late_by_generator = 10;
    counts.late_for_connection = 500;
    judged(&run, Limit::Server, &["5.00 % were sent late"]);
}

#[test]
fn what_the_server_left_without_a_response_is_its_own() {
    let mut run = open();
    run.streams[0].tally.counts.sent = 9000;
    judged(&run, Limit::Server, &["10 % were never sent"]);
    let mut run = open();
    for _ in 0..20 {
        let tally = &mut run.streams[0].tally;
        tally.failed(FailureKind::Timeout, 30_000_000_000, String::new);
    }
    judged(&run, Limit::Server, &["0.20 % had no response in time"]);
    let mut run = open();
    run.streams[0].elapsed = 13 * SECOND;
    judged(&run, Limit::Server, &["3.00 s after"]);
}

#[test]
fn a_slow_server_that_keeps_up_is_not_the_limit() {
    let mut run = open();
    let stream = &mut run.streams[0];
    stream.tally.good.clear();
    stream.tally.good.record_many(2_000_000 * US, 10_000);
    stream.elapsed = 12 * SECOND;
    judged(&run, Limit::Nobody, &[]);
}

#[test]
fn a_wait_for_a_core_is_reported() {
    let mut run = closed();
    run.generator[0].waited = 2 * SECOND;
    run.server = Some(ServerUsage {
        cores_shared: 2,
        ..server(1.9, 2)
    });
    judged(
        &run,
        Limit::Server,
        &["20 %", "2 of the server's 2 cores", "taskset"],
    );
    run.server = Some(server(0.1, 1));
    judged(&run, Limit::Nobody, &["another program"]);
}

#[test]
fn silence_has_no_limit() {
    let mut run = open();
    run.streams[0].tally = Tally::default();
    judged(&run, Limit::Unknown, &["No request got a response"]);
}

#[test]
fn a_stream_of_several_is_named() {
    let mut run = open();
    let mut other = run.streams[0].clone();
    other.plan.name = "other".into();
    other.tally.counts.late_by_generator = 100;
    run.streams.push(other);
    judged(
        &run,
        Limit::Generator,
        &["other: The generator sent 100 of"],
    );
}
