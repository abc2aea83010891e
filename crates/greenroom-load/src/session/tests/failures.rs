//! Servers that are gone, or misbehave.

use std::thread;

use socket2::{Domain, SockAddr, Socket, Type};

use super::http2_server::{Http2, Manner};
use super::server::{Server, nobody};
use super::*;

fn http2() -> StreamPlan {
    plan(Protocol::Http2)
}

fn failures_of(manner: Manner) -> Vec<(FailureKind, u64)> {
    let server = Http2::new(manner).start();
    run(&with_requests(http2(), 3), server.address).failures()
}

#[test]
fn nobody_there_ends_the_run_after_ten_attempts() {
    let outcome = run(&with_requests(http2(), 1000), nobody());
    assert_eq!(outcome.failures(), [(FailureKind::Refused, 10)]);
    assert!(outcome.ending.gave_up);
    assert_eq!(outcome.tally.counts.connections, 0);
}

#[test]
fn nobody_there_ends_an_open_loop_as_well() {
    let plan = StreamPlan {
        connections: 100,
        ..with_rate(http2(), 1000.0, Duration::from_mins(10))
    };
    let outcome = run(&plan, nobody());
    assert!(outcome.ending.gave_up);
    assert!(outcome.tally.failures.count(FailureKind::Refused) >= 10);
}

#[test]
fn a_socket_that_does_not_exist_is_refused() {
    let endpoint = Endpoint {
        target: "http://localhost/".parse().expect("a URL"),
        address: Address::Unix("/nowhere/socket".into()),
        tls: None,
    };
    let outcome = run_to(&with_requests(http2(), 2), vec![endpoint]);
    assert_eq!(outcome.failures(), [(FailureKind::Refused, 2)]);
}

#[test]
fn a_full_queue_of_connections_is_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    let listener = Socket::new(Domain::UNIX, Type::STREAM, None).expect("a socket");
    let address = SockAddr::unix(&path).expect("a short path");
    listener.bind(&address).expect("a new path");
    listener.listen(1).expect("it is bound");
    let endpoint = Endpoint {
        target: "http://localhost/".parse().expect("a URL"),
        address: Address::Unix(path),
        tls: None,
    };
    let plan = StreamPlan {
        connections: 5,
        timeout: Duration::from_millis(100),
        ..with_requests(http2(), 5)
    };
    let outcome = run_to(&plan, vec![endpoint]);
    let count = |kind| outcome.tally.failures.count(kind);
    assert_eq!(outcome.tally.failures.total(), 5);
    assert!(count(FailureKind::ConnectTimeout) > 0);
    assert_eq!(count(FailureKind::Refused), 0);
}

#[test]
fn streams_that_are_reset_are_reported() {
    assert_eq!(failures_of(Manner::Reset), [(FailureKind::Reset, 3)]);
}

#[test]
fn responses_that_never_come_time_out() {
    let server = Http2::new(Manner::Silent).start();
    let plan = StreamPlan {
        timeout: Duration::from_millis(200),
        ..with_requests(http2(), 3)
    };
    let failures = run(&plan, server.address).failures();
    assert_eq!(failures, [(FailureKind::Timeout, 3)]);
}

#[test]
fn responses_of_a_wrong_length_are_malformed() {
    assert_eq!(failures_of(Manner::TooShort), [(FailureKind::Malformed, 3)]);
}

#[test]
fn a_time_out_counts_as_latency_from_the_intended_time() {
    let server = Http2::new(Manner::Silent).start();
    let timeout = Duration::from_millis(100);
    let plan = StreamPlan {
        timeout,
        ..with_requests(http2(), 1)
    };
    let latency = run(&plan, server.address).tally.latency();
    assert_eq!(latency.count(), 1);
    assert!(latency.max() >= timeout);
}

#[test]
fn the_wait_for_a_time_out_after_the_end_counts_to_no_rate() {
    let server = Http2::new(Manner::Silent).start();
    let mut plan = StreamPlan {
        timeout: Duration::from_millis(1200),
        ..http2()
    };
    plan.end.requests = None;
    plan.end.duration = Some(Duration::from_secs(1));
    let outcome = run(&plan, server.address);
    assert_eq!(outcome.failures(), [(FailureKind::Timeout, 1)]);
    assert_eq!(outcome.ending.last_ns, 1_000_000_000);
}

#[test]
fn a_server_of_another_protocol_is_reported() {
    let server = Server::saying(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    let outcome = run(&with_requests(http2(), 1000), server.address);
    assert_eq!(outcome.failures(), [(FailureKind::Handshake, 10)]);
    assert!(outcome.ending.gave_up);
}

#[test]
fn a_server_that_closes_at_once_is_reported() {
    let server = Server::saying(b"");
    let outcome = run(&with_requests(http2(), 3), server.address);
    assert_eq!(outcome.failures(), [(FailureKind::ClosedEarly, 3)]);
}

#[test]
fn a_handshake_that_hangs_is_a_connect_time_out() {
    let server = Server::start(|stream| async {
        let _kept = stream;
        std::future::pending::<()>().await;
    });
    let plan = StreamPlan {
        timeout: Duration::from_millis(100),
        ..with_requests(plan(Protocol::WebSocket), 2)
    };
    let outcome = run(&plan, server.address);
    assert_eq!(outcome.failures(), [(FailureKind::ConnectTimeout, 2)]);
    assert_eq!(outcome.tally.timed_out.count(), 2);
}

#[test]
fn what_is_under_way_is_reported_when_the_run_is_stopped() {
    let server = Http2::new(Manner::Silent);
    let running = server.start();
    let stop = Stop::default();
    let plan = StreamPlan {
        connections: 3,
        ..with_requests(http2(), 1000)
    };
    let endpoints = vec![endpoint("http://localhost/", running.address)];
    let load = thread::spawn({
        let stop = stop.clone();
        move || run_until(&plan, endpoints, stop)
    });
    while server.count() < 3 {
        thread::yield_now();
    }
    stop.stop();
    let outcome = load.join().expect("it ends");
    assert_eq!(outcome.ending.unfinished, 3);
    assert_eq!((outcome.responses(), outcome.failures()), (0, vec![]));
    assert!(!outcome.ending.gave_up);
}

#[test]
fn a_request_that_cannot_be_written_is_reported_at_once() {
    let mut plan = with_requests(http2(), 5);
    plan.request.method = "GE T".to_owned();
    assert!(crate::session::check(&plan).is_err());
    let outcome = run(&plan, nobody());
    assert!(outcome.ending.gave_up);
}
