//! The numbers that are counted, and over which time, against servers of the fixture.

mod fixture;

use std::time::Duration;

use fixture::{Reply, Server, hello, response};
use greenroom_load::plan::{End, Plan, StreamPlan};
use greenroom_load::record::FailureKind;
use greenroom_load::run::{Measurement, RunError, Stop, run};

const INTERVAL: Duration = Duration::from_millis(200);

fn stream(url: &str) -> StreamPlan {
    StreamPlan::new(url.parse().expect("a URL"))
}

fn try_measure(streams: Vec<StreamPlan>, interval: Duration) -> Result<Measurement, RunError> {
    let plan = Plan { streams, interval };
    run(&plan, None, &Stop::default(), &mut |_| {})
}

fn measure(stream: StreamPlan) -> Measurement {
    try_measure(vec![stream], INTERVAL).expect("the run begins")
}

#[test]
fn the_wait_for_a_time_out_after_the_end_counts_to_no_rate() {
    let server = Server::start(|_| Reply::Hang);
    let mut stream = stream(&server.url("/"));
    stream.end = End {
        requests: None,
        duration: Some(Duration::from_secs(1)),
    };
    stream.timeout = Duration::from_millis(1200);
    let measured = measure(stream);
    let failures = &measured.streams[0].tally.failures;
    assert_eq!(failures.count(FailureKind::Timeout), 1);
    assert_eq!(measured.elapsed, Duration::from_secs(1));
}

/// The connection of the request without a response takes no part in the rest.
#[test]
fn the_first_response_is_the_first_that_comes() {
    let server = Server::start(|request| match request.number {
        0 => Reply::Hang,
        3 => Reply::Keep(response("200 OK", "longer than the others")),
        _ => hello(),
    });
    let mut stream = stream(&server.url("/"));
    stream.end = End {
        requests: Some(7),
        duration: None,
    };
    stream.connections = 2;
    stream.keep_alive = true;
    stream.timeout = Duration::from_secs(2);
    let measured = measure(stream).streams.remove(0);
    assert_eq!(measured.tally.responses(), 6);
    assert_eq!(measured.tally.counts.other_length, 1);
    assert_eq!(measured.first.expect("there are six").body, b"hello\n");
}

#[test]
fn a_plan_that_cannot_be_carried_out_is_refused() {
    let error = |streams: Vec<StreamPlan>, interval| {
        let refused = try_measure(streams, interval).expect_err("it cannot be carried out");
        assert!(matches!(refused, RunError::Plan(_)), "{refused}");
        refused.to_string()
    };
    let one = || stream("http://127.0.0.1:1/");
    assert!(error(Vec::new(), INTERVAL).contains("needs a stream"));
    assert!(error(vec![one()], Duration::ZERO).contains("interval"));
    let mut threads = one();
    (threads.threads, threads.connections) = (3, 2);
    assert!(error(vec![threads], INTERVAL).contains("3 threads"));
}
