//! The times and connections of requests.

use super::http2_server::{Http2, Manner};
use super::*;

const FIFTH: Duration = Duration::from_millis(200);

fn http2() -> StreamPlan {
    plan(Protocol::Http2)
}

#[test]
fn an_open_loop_sends_all_that_is_due() {
    let server = Http2::new(Manner::Bytes).start();
    let plan = StreamPlan {
        connections: 400,
        in_flight_max: 10,
        ..with_rate_and_patience(http2(), 2000.0, FIFTH)
    };
    let outcome = run(&plan, server.address);
    assert_eq!((outcome.responses(), outcome.failures()), (400, vec![]));
    let counts = outcome.tally.counts;
    assert_eq!((counts.due, counts.sent), (400, 400));
    assert_eq!(outcome.tally.lag.count(), 400);
    assert!(outcome.batches > 1, "each interval is handed over");
}

#[test]
fn spinning_sends_the_same() {
    let server = Http2::new(Manner::Bytes).start();
    let plan = StreamPlan {
        spin: true,
        connections: 100,
        ..with_rate_and_patience(http2(), 500.0, FIFTH)
    };
    assert_eq!(run(&plan, server.address).responses(), 100);
}

#[test]
fn what_finds_no_connection_waits_and_counts_from_its_time() {
    let server = Http2::new(Manner::Silent).start();
    let plan = StreamPlan {
        timeout: Duration::from_millis(120),
        ..with_rate(http2(), 100.0, FIFTH)
    };
    let outcome = run(&plan, server.address);
    let counts = outcome.tally.counts;
    assert_eq!(counts.due, 20);
    // Each keeps the connection for more than half of the schedule.
    assert!((1..=2).contains(&counts.sent));
    assert_eq!(counts.late_for_connection, counts.sent - 1);
    let expected = [
        (FailureKind::Timeout, counts.sent),
        (FailureKind::NeverSent, 20 - counts.sent),
    ];
    assert_eq!(outcome.failures(), expected);
    assert_eq!(outcome.tally.latency().count(), 20);
}

#[test]
fn connections_are_opened_while_none_is_free() {
    let server = Http2::new(Manner::Silent).start();
    let plan = StreamPlan {
        connections: 5,
        timeout: Duration::from_secs(1),
        ..with_rate(http2(), 100.0, FIFTH)
    };
    let outcome = run(&plan, server.address);
    let counts = outcome.tally.counts;
    assert_eq!((counts.due, counts.sent, counts.connections), (20, 5, 5));
}

#[test]
fn servers_get_requests_by_weight() {
    let (one, other) = (Http2::new(Manner::Bytes), Http2::new(Manner::Bytes));
    let (first, second) = (one.start(), other.start());
    let endpoints = || {
        vec![
            endpoint("weight=3 http://one/", first.address),
            endpoint("http://other/", second.address),
        ]
    };
    let plan = StreamPlan {
        connections: 100,
        ..with_rate_and_patience(http2(), 500.0, FIFTH)
    };
    assert_eq!(run_to(&plan, endpoints()).responses(), 100);
    assert_eq!((one.count(), other.count()), (75, 25));
    let plan = StreamPlan {
        keep_alive: false,
        ..with_requests(http2(), 100)
    };
    assert_eq!(run_to(&plan, endpoints()).responses(), 100);
    assert_eq!((one.count(), other.count()), (150, 50));
}

#[test]
fn one_connection_serves_several_servers_in_turn() {
    let (one, other) = (Http2::new(Manner::Bytes), Http2::new(Manner::Bytes));
    let (first, second) = (one.start(), other.start());
    let endpoints = vec![
        endpoint("http://one/", first.address),
        endpoint("http://other/", second.address),
    ];
    let plan = with_rate(http2(), 100.0, FIFTH);
    let outcome = run_to(&plan, endpoints);
    let never_sent = outcome.tally.failures.count(FailureKind::NeverSent);
    assert_eq!(outcome.responses() + never_sent, 20);
    assert!(one.count() > 0 && other.count() > 0);
}

#[test]
fn a_closed_loop_ends_with_its_time() {
    let server = Http2::new(Manner::Bytes).start();
    let mut plan = http2();
    plan.connections = 4;
    plan.end.requests = None;
    plan.end.duration = Some(FIFTH);
    let outcome = run(&plan, server.address);
    assert_eq!(outcome.failures(), []);
    assert_eq!(outcome.responses(), outcome.tally.counts.sent);
    assert!(outcome.responses() >= 4);
}

#[test]
fn a_thread_without_connections_ends() {
    let plan = StreamPlan {
        connections: 0,
        ..with_requests(http2(), 3)
    };
    let outcome = run(&plan, super::server::nobody());
    assert_eq!(
        (outcome.tally.counts.sent, outcome.ending.gave_up),
        (0, false)
    );
}
