//! The numbers that are counted, and over which time, against servers of the fixture.

mod fixture;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread;
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

/// Reads a request with a body of so many bytes.
fn take_request(input: &mut impl BufRead, body_bytes: usize) {
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        input.read_line(&mut line).expect("a head");
    }
    let mut body = vec![0; body_bytes];
    input.read_exact(&mut body).expect("a body");
}

/// The server ends the connection while the third of four requests is on its way.
#[test]
fn pipelined_responses_that_came_before_a_send_failed_are_responses() {
    // More than the buffers of both sides take.
    const BODY_BYTES: usize = 16 * 1024 * 1024;
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    let server = thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a connection");
        let mut stream = BufReader::new(stream);
        for _ in 0..2 {
            take_request(&mut stream, BODY_BYTES);
        }
        let both = response("200 OK", "hello").repeat(2);
        stream.get_mut().write_all(&both).expect("it is read");
    });
    let mut stream = stream(&format!("http://{address}/"));
    stream.request.method = "POST".to_owned();
    stream.request.body = vec![b'x'; BODY_BYTES];
    stream.end = End {
        requests: Some(4),
        duration: None,
    };
    (stream.keep_alive, stream.in_flight_max) = (true, 4);
    let measured = measure(stream).streams.remove(0);
    server.join().expect("no panic");
    assert_eq!(measured.tally.responses(), 2);
    assert_eq!(measured.tally.failures.total(), 2);
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
