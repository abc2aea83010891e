//! Whole runs over HTTP/1.1 against servers of the fixture.

mod fixture;

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fixture::{Reply, Server, hello, response};
use greenroom_load::plan::{End, Pace, Phase, Place, Plan, Schedule, StreamPlan, Target};
use greenroom_load::record::{FailureKind, Tally};
use greenroom_load::run::{Measurement, RunError, Stop, run};
use tempfile::TempDir;

fn stream(url: &str) -> StreamPlan {
    StreamPlan::new(url.parse().expect("a URL"))
}

fn requests(number: u64) -> End {
    End {
        requests: Some(number),
        duration: None,
    }
}

fn open(rate: f64, milliseconds: u64) -> Pace {
    let duration = Duration::from_millis(milliseconds);
    Pace::Open(Schedule::constant(rate, duration).expect("a schedule"))
}

/// As [`open`], and continues with nothing that is due: requests that a loaded machine sends late
/// are sent.
fn open_with_patience(rate: f64, milliseconds: u64) -> Pace {
    let phase = |rate, duration| Phase {
        from: rate,
        to: rate,
        duration,
    };
    let phases = vec![
        phase(rate, Duration::from_millis(milliseconds)),
        phase(0.0, Duration::from_mins(1)),
    ];
    Pace::Open(Schedule::new(phases).expect("a schedule"))
}

fn measure(streams: Vec<StreamPlan>) -> Measurement {
    let plan = Plan {
        streams,
        interval: Duration::from_millis(200),
    };
    run(&plan, None, &Stop::default(), &mut |_| {}).expect("the run begins")
}

fn tally(stream: StreamPlan) -> Tally {
    measure(vec![stream]).streams.remove(0).tally
}

/// Returns the failure of one request to a server with this reply.
fn failure_of(reply: Reply) -> (Tally, FailureKind) {
    let server = Server::start(move |_| reply.clone());
    let mut stream = stream(&server.url("/"));
    stream.timeout = Duration::from_millis(300);
    let tally = tally(stream);
    let (kind, count) = tally.failures.iter().next().expect("a failure");
    assert_eq!((count, tally.responses()), (1, 0));
    (tally, kind)
}

#[test]
fn a_closed_loop_sends_exactly_what_was_asked_for() {
    let server = Server::start(|_| hello());
    let mut stream = stream(&server.url("/a?b"));
    stream.end = requests(1003);
    stream.connections = 10;
    stream.keep_alive = true;
    let measured = measure(vec![stream]).streams.remove(0);
    let tally = &measured.tally;
    assert_eq!((tally.responses(), tally.counts.sent), (1003, 1003));
    assert_eq!((tally.counts.connections, tally.counts.reused), (10, 993));
    assert_eq!(tally.counts.body_bytes, 1003 * 6);
    assert_eq!(tally.counts.received_bytes, 1003 * hello_bytes());
    assert_eq!(server.served(), 1003);
    let first = measured.first.expect("a response");
    assert_eq!(first.field("Server").as_deref(), Some("fixture"));
    assert_eq!(first.body, b"hello\n");
    assert_eq!(
        measured
            .timeline
            .points()
            .iter()
            .map(|point| point.good)
            .sum::<u64>(),
        1003
    );
}

fn hello_bytes() -> u64 {
    response("200 OK", "hello\n").len() as u64
}

#[test]
fn without_keep_alive_each_request_has_a_connection() {
    let server = Server::start(|request| {
        assert!(request.head.contains("\r\nConnection: close\r\n"));
        Reply::Close(response("200 OK\r\nConnection: close", "hello\n"))
    });
    let mut stream = stream(&server.url("/"));
    stream.end = requests(200);
    stream.connections = 200;
    let tally = tally(stream);
    assert_eq!((tally.responses(), tally.counts.reused), (200, 0));
    assert_eq!(tally.connect.count(), 200);
    assert_eq!(server.connections.load(Ordering::Relaxed), 200);
}

#[test]
fn threads_share_requests_and_connections() {
    let server = Server::start(|_| hello());
    let mut stream = stream(&server.url("/"));
    stream.end = requests(101);
    stream.connections = 5;
    stream.threads = 3;
    stream.keep_alive = true;
    let tally = tally(stream);
    assert_eq!((tally.responses(), tally.counts.connections), (101, 5));
}

#[test]
fn pipelined_requests_get_their_responses_in_order() {
    let server =
        Server::start(|request| Reply::Keep(response("200 OK", &format!("{:06}", request.number))));
    let mut stream = stream(&server.url("/"));
    stream.end = requests(500);
    stream.connections = 2;
    stream.in_flight_max = 16;
    stream.keep_alive = true;
    let tally = tally(stream);
    assert_eq!((tally.responses(), tally.counts.connections), (500, 2));
    assert_eq!(tally.failures.total(), 0);
}

#[test]
fn a_server_that_closes_is_connected_to_again() {
    let server = Server::start(|request| {
        if request.number % 10 == 9 {
            Reply::Close(response("200 OK\r\nConnection: close", "hello\n"))
        } else {
            hello()
        }
    });
    let mut stream = stream(&server.url("/"));
    stream.end = requests(100);
    stream.keep_alive = true;
    let tally = tally(stream);
    assert_eq!((tally.responses(), tally.failures.total()), (100, 0));
    assert_eq!(tally.counts.connections, 10);
}

#[test]
fn every_framing_of_a_body_is_understood() {
    let bodies: [(&str, &[u8], u64); 4] = [
        (
            "GET",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            3,
        ),
        ("GET", b"HTTP/1.0 200 OK\r\n\r\nuntil the end", 13),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n", 0),
        (
            "HEAD",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n",
            0,
        ),
    ];
    for (method, bytes, expected) in bodies {
        let server = Server::start(move |_| Reply::Close(bytes.to_vec()));
        let mut stream = stream(&server.url("/"));
        stream.request.method = method.to_owned();
        let tally = tally(stream);
        assert_eq!(
            (tally.responses(), tally.counts.body_bytes),
            (1, expected),
            "{method}"
        );
        assert_eq!(tally.failures.total(), 0);
    }
}

#[test]
fn a_large_body_is_sent_whole() {
    let server = Server::start(|request| {
        let is_whole = request.body.len() == 5_000_000 && request.body.ends_with(b"end");
        Reply::Keep(response("200 OK", if is_whole { "whole" } else { "torn!" }))
    });
    let mut stream = stream(&server.url("/"));
    stream.request.method = "POST".to_owned();
    stream.request.body = [vec![b'x'; 4_999_997], b"end".to_vec()].concat();
    stream.end = requests(6);
    stream.connections = 2;
    stream.keep_alive = true;
    let measured = measure(vec![stream]).streams.remove(0);
    assert_eq!(measured.tally.responses(), 6);
    assert_eq!(measured.first.expect("a response").body, b"whole");
}

#[test]
fn turns_follow_the_weights() {
    let light = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&light);
    let server = Server::start(move |request| {
        if request.head.starts_with("GET /light ") {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        hello()
    });
    let mut stream = stream(&server.url("/light"));
    stream.targets[0].weight = 3;
    stream
        .targets
        .push(server.url("/heavy").parse().expect("a URL"));
    stream.end = requests(400);
    stream.keep_alive = true;
    assert_eq!(tally(stream).responses(), 400);
    assert_eq!(light.load(Ordering::Relaxed), 300);
}

#[test]
fn statuses_are_counted_and_told_apart() {
    let server = Server::start(|request| match request.number % 4 {
        0 => Reply::Keep(response("503 Service Unavailable", "busy!\n")),
        _ => hello(),
    });
    let mut stream = stream(&server.url("/"));
    stream.end = requests(100);
    stream.keep_alive = true;
    let tally = tally(stream);
    assert_eq!(tally.statuses().collect::<Vec<_>>(), [(200, 75), (503, 25)]);
    assert_eq!((tally.good.count(), tally.bad.count()), (75, 25));
    assert_eq!(tally.counts.other_length, 0);
}

#[test]
fn responses_of_another_length_are_counted_unless_they_may_vary() {
    for (variable_length, expected) in [(false, 1), (true, 0)] {
        let server = Server::start(|request| {
            Reply::Keep(response(
                "200 OK",
                if request.number == 3 {
                    "longer"
                } else {
                    "short"
                },
            ))
        });
        let mut stream = stream(&server.url("/"));
        stream.end = requests(10);
        stream.keep_alive = true;
        stream.variable_length = variable_length;
        assert_eq!(tally(stream).counts.other_length, expected);
    }
}

#[test]
fn what_goes_wrong_is_reported_by_kind() {
    let (garbage, kind) = failure_of(Reply::Close(b"220 mail.example ESMTP\r\n".to_vec()));
    assert_eq!(kind, FailureKind::Malformed);
    let detail = garbage.failures.detail(kind).expect("a detail");
    assert!(detail.contains("220 mail.example"), "{detail}");

    let torn = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort";
    assert_eq!(
        failure_of(Reply::Close(torn.to_vec())).1,
        FailureKind::ClosedEarly
    );
    assert_eq!(
        failure_of(Reply::Close(Vec::new())).1,
        FailureKind::ClosedEarly
    );

    let (late, kind) = failure_of(Reply::Hang);
    assert_eq!(kind, FailureKind::Timeout);
    assert!(late.latency().max() >= Duration::from_millis(299));
}

#[test]
fn a_server_that_is_not_there_is_given_up() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    drop(listener);
    let mut stream = stream(&format!("http://{address}/"));
    stream.end = requests(1_000_000);
    stream.connections = 4;
    let measured = measure(vec![stream]);
    assert!(measured.gave_up);
    let failures = &measured.streams[0].tally.failures;
    assert!((10..100).contains(&failures.count(FailureKind::Refused)));
}

#[test]
fn a_name_without_address_begins_nothing() {
    let plan = Plan {
        streams: vec![stream("http://no-such-host.invalid/")],
        interval: Duration::from_secs(1),
    };
    let error = run(&plan, None, &Stop::default(), &mut |_| {}).expect_err("no address");
    assert!(matches!(error, RunError::Resolve { .. }));
    assert!(error.to_string().contains("no-such-host.invalid"));
}

#[test]
fn an_open_loop_sends_each_request_of_its_schedule() {
    let server = Server::start(|_| hello());
    let mut stream = stream(&server.url("/"));
    stream.pace = open_with_patience(500.0, 600);
    stream.connections = 100;
    stream.keep_alive = true;
    let measured = measure(vec![stream]).streams.remove(0);
    assert_eq!(
        (measured.tally.counts.due, measured.tally.counts.sent),
        (300, 300)
    );
    assert_eq!(measured.tally.responses(), 300);
    assert!(!measured.missed_its_rate());
}

#[test]
fn an_open_loop_goes_on_while_a_server_is_silent() {
    let server = Server::start(|request| {
        if request.number < 30 {
            Reply::Hang
        } else {
            hello()
        }
    });
    let mut stream = stream(&server.url("/"));
    stream.pace = open_with_patience(100.0, 1000);
    stream.connections = 200;
    stream.keep_alive = true;
    stream.timeout = Duration::from_secs(3);
    let tally = tally(stream);
    assert_eq!((tally.counts.sent, tally.responses()), (100, 70));
    assert_eq!(tally.failures.count(FailureKind::Timeout), 30);
}

#[test]
fn what_had_no_connection_is_counted_as_late_or_never_sent() {
    let server = Server::start(|_| Reply::Hang);
    let mut stream = stream(&server.url("/"));
    stream.pace = open(100.0, 1000);
    stream.connections = 1;
    stream.keep_alive = true;
    stream.timeout = Duration::from_millis(400);
    let measured = measure(vec![stream]).streams.remove(0);
    let tally = &measured.tally;
    assert_eq!(tally.counts.due, 100);
    assert!((1..=3).contains(&tally.counts.sent), "{:?}", tally.counts);
    assert_eq!(tally.counts.late_for_connection, tally.counts.sent - 1);
    let never = tally.failures.count(FailureKind::NeverSent);
    assert_eq!(never + tally.counts.sent, 100);
    assert!(measured.missed_its_rate());
    assert!(tally.latency().max() >= Duration::from_millis(900));
}

#[test]
fn streams_have_statistics_of_their_own() {
    let server = Server::start(|request| {
        if request.head.starts_with("GET /slow") {
            Reply::Hang
        } else {
            hello()
        }
    });
    let mut slow = stream(&server.url("/slow"));
    slow.pace = open_with_patience(20.0, 500);
    slow.connections = 50;
    slow.timeout = Duration::from_secs(3);
    let mut fast = slow.clone();
    fast.targets = vec![server.url("/fast").parse().expect("a URL")];
    fast.pace = open_with_patience(100.0, 500);
    let measured = measure(vec![slow, fast]);
    assert_eq!(measured.streams[0].tally.failures.total(), 10);
    assert_eq!(measured.streams[0].tally.responses(), 0);
    assert_eq!(measured.streams[1].tally.responses(), 50);
}

#[test]
fn an_interrupted_run_tells_what_it_has() {
    let stop = Stop::default();
    let from_the_server = stop.clone();
    let server = Server::start(move |request| {
        if request.number == 5 {
            from_the_server.stop();
            return Reply::Hang;
        }
        hello()
    });
    let mut stream = stream(&server.url("/"));
    stream.end = requests(1000);
    stream.keep_alive = true;
    let plan = Plan {
        streams: vec![stream],
        interval: Duration::from_secs(1),
    };
    let measured = run(&plan, None, &stop, &mut |_| {}).expect("the run begins");
    assert!(measured.interrupted);
    assert_eq!(measured.streams[0].tally.responses(), 5);
    assert_eq!(measured.streams[0].unfinished, 1);
}

#[test]
fn connections_come_from_the_addresses_that_were_given() {
    let server = Server::start(|request| {
        let peer = request.peer.expect("TCP").ip().to_string();
        Reply::Close(response("200 OK\r\nConnection: close", &peer))
    });
    let mut stream = stream(&server.url("/"));
    stream.sources = vec!["127.0.0.3".parse().expect("an address")];
    let measured = measure(vec![stream]).streams.remove(0);
    assert_eq!(measured.first.expect("a response").body, b"127.0.0.3");
}

#[test]
fn unix_sockets_are_spoken_to() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("socket");
    let _server = fixture::on_unix_socket(&path, hello());
    let mut target: Target = "http://localhost/".parse().expect("a URL");
    target.place = Place::Unix(path);
    let mut stream = StreamPlan::new(target);
    stream.end = requests(20);
    stream.keep_alive = true;
    assert_eq!(tally(stream).responses(), 20);
}

/// Returns a Unix socket, with its directory, whose backlog is full with the second connection, and
/// a stream to it.
fn in_front_of_a_short_backlog() -> (TempDir, UnixListener, StreamPlan) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("socket");
    let listener = UnixListener::bind(&path).expect("a free path");
    rustix::net::listen(&listener, 1).expect("a shorter backlog");
    let mut target: Target = "http://localhost/".parse().expect("a URL");
    target.place = Place::Unix(path);
    (directory, listener, StreamPlan::new(target))
}

/// Whoever waits for room in the server's backlog waits for the server, not for the generator.
#[test]
fn a_full_backlog_is_not_the_generators_lag() {
    let (_directory, listener, mut stream) = in_front_of_a_short_backlog();
    stream.pace = open_with_patience(100.0, 200);
    stream.connections = 50;
    let server = std::thread::spawn(move || {
        // Until the last of the requests is long due.
        std::thread::sleep(Duration::from_millis(500));
        for client in listener.incoming().take(20) {
            let mut client = client.expect("a connection");
            // Room for one at a time: that one of them is tried late says nothing of the others.
            std::thread::sleep(Duration::from_millis(5));
            let mut head = [0; 1024];
            assert_ne!(client.read(&mut head).expect("a request"), 0);
            let closing = response("200 OK\r\nConnection: close", "hello");
            client.write_all(&closing).expect("the client reads");
        }
    });
    let tally = tally(stream);
    server.join().expect("all requests come");
    assert_eq!(tally.responses(), 20);
    assert!(tally.counts.late_for_connection > 0, "{:?}", tally.counts);
}

/// The connections whose requests timed out stay in its queue.
#[test]
fn a_server_that_never_accepts_ends_a_closed_loop() {
    let (_directory, _listener, mut stream) = in_front_of_a_short_backlog();
    stream.end = requests(50);
    stream.connections = 20;
    stream.timeout = Duration::from_millis(200);
    let tally = tally(stream);
    assert_eq!((tally.counts.sent, tally.responses()), (50, 0));
    let failed = [FailureKind::ConnectTimeout, FailureKind::Timeout];
    let failed = failed.map(|kind| tally.failures.count(kind));
    assert!(failed[0] >= 40, "{:?}", tally.failures);
    assert_eq!(failed.iter().sum::<u64>(), 50);
}

/// Those that wait for room in its queue when the time is up are no different from those in it.
#[test]
fn all_that_wait_for_a_server_at_the_end_have_failed() {
    let (_directory, _listener, mut stream) = in_front_of_a_short_backlog();
    stream.end = End {
        requests: None,
        duration: Some(Duration::from_secs(1)),
    };
    stream.connections = 20;
    stream.timeout = Duration::from_secs(2);
    let tally = tally(stream);
    assert_eq!((tally.counts.sent, tally.responses()), (20, 0));
    assert_eq!(tally.failures.total(), 20, "{:?}", tally.failures);
}

#[test]
fn a_stream_that_was_over_keeps_its_time_in_an_interrupted_run() {
    let server = Server::start(|_| hello());
    let mut first = stream(&server.url("/"));
    first.end = requests(10);
    let mut second = stream(&server.url("/"));
    second.pace = open_with_patience(10.0, 60_000);
    let plan = Plan {
        streams: vec![first, second],
        interval: Duration::from_millis(100),
    };
    let stop = Stop::default();
    let from_here = stop.clone();
    let measured = run(&plan, None, &stop, &mut |progress| {
        // When the second stream alone is left.
        if progress.stream == 1 && progress.elapsed > Duration::from_millis(500) {
            from_here.stop();
        }
    });
    let measured = measured.expect("the run begins");
    assert!(measured.interrupted);
    let [first, second] = [0, 1].map(|number| measured.streams[number].elapsed);
    assert!(first < second, "{first:?} of {second:?}");
}

/// Each of them sends one batch, at the end.
#[test]
fn all_threads_of_a_short_run_are_in_one_interval() {
    let server = Server::start(|_| hello());
    let mut stream = stream(&server.url("/"));
    stream.end = requests(200);
    stream.threads = 4;
    stream.connections = 4;
    let plan = Plan {
        streams: vec![stream],
        interval: Duration::from_secs(10),
    };
    let measured = run(&plan, None, &Stop::default(), &mut |_| {}).expect("the run begins");
    let timeline = &measured.streams[0].timeline;
    let counts: Vec<u64> = timeline.points().iter().map(|point| point.good).collect();
    assert_eq!(counts, [200]);
}

#[test]
fn a_response_may_come_before_its_request_is_sent() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("bound"));
    let server = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("a connection");
        let mut input = vec![0; 64 * 1024];
        client.read_exact(&mut input[..1024]).expect("a head");
        let rejection = response("413 Content Too Large\r\nConnection: close", "no\n");
        client.write_all(&rejection).expect("the client reads");
        // Continues to read, as servers do that close without a reset.
        while client.read(&mut input).is_ok_and(|length| length > 0) {}
    });
    let mut stream = stream(&url);
    stream.request.method = "POST".to_owned();
    stream.request.body = vec![b'x'; 20_000_000];
    let tally = tally(stream);
    assert_eq!(tally.statuses().collect::<Vec<_>>(), [(413, 1)]);
    assert_eq!(tally.failures.total(), 0);
    server.join().expect("the server ends with its client");
}

#[test]
fn one_connection_after_the_other_asks_every_server() {
    let servers = [Server::start(|_| hello()), Server::start(|_| hello())];
    let mut stream = stream(&servers[0].url("/"));
    stream
        .targets
        .push(servers[1].url("/").parse().expect("a URL"));
    stream.end = requests(100);
    assert_eq!(tally(stream.clone()).responses(), 100);
    assert_eq!(servers.each_ref().map(Server::served), [50, 50]);

    stream.keep_alive = true;
    let plan = Plan {
        streams: vec![stream],
        interval: Duration::from_secs(1),
    };
    let error = run(&plan, None, &Stop::default(), &mut |_| {}).expect_err("too few connections");
    assert!(error.to_string().contains("2 servers"), "{error}");
}

#[test]
fn a_thread_that_has_nothing_to_do_holds_nobody_up() {
    let server = Server::start(|_| Reply::Hang);
    let mut stream = stream(&server.url("/"));
    stream.connections = 2;
    stream.threads = 2;
    stream.timeout = Duration::from_millis(500);
    let plan = Plan {
        streams: vec![stream],
        interval: Duration::from_millis(100),
    };
    let mut told = 0;
    let measured = run(&plan, None, &Stop::default(), &mut |_| told += 1);
    let measured = measured.expect("the run begins").streams.remove(0);
    assert_eq!(measured.tally.failures.count(FailureKind::Timeout), 1);
    assert!(told >= 3, "{told}");
}

/// Returns a self-signed certificate for 127.0.0.1.
fn tls() -> tokio_rustls::TlsAcceptor {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let key = made.signing_key.serialize_der();
    let key = rustls::pki_types::PrivateKeyDer::try_from(key).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("key and certificate belong together");
    tokio_rustls::TlsAcceptor::from(Arc::new(config))
}

#[test]
fn tls_is_spoken_and_certificates_are_checked() {
    let body = "x".repeat(300_000);
    let server = Server::start_tls(tls(), move |request| {
        assert_eq!(request.body.len(), 3_000_000);
        Reply::Keep(response("200 OK", &body))
    });
    let url = format!("https://{}/", server.address);
    let mut stream = stream(&url);
    stream.request.method = "POST".to_owned();
    stream.request.body = vec![b'y'; 3_000_000];
    stream.end = requests(40);
    stream.connections = 4;
    stream.keep_alive = true;
    let distrusted = tally(stream.clone());
    assert_eq!(distrusted.responses(), 0);
    assert!(distrusted.failures.count(FailureKind::Tls) >= 10);
    let detail = distrusted.failures.detail(FailureKind::Tls);
    assert!(
        detail.is_some_and(|detail| detail.contains("UnknownIssuer")),
        "{detail:?}"
    );

    stream.tls.insecure = true;
    let measured = measure(vec![stream]).streams.remove(0);
    assert_eq!(measured.tally.responses(), 40);
    assert_eq!(measured.tally.counts.body_bytes, 40 * 300_000);
    assert_eq!(measured.tally.counts.connections, 4);
    let first = measured.first.expect("a response");
    assert!(first.tls.is_some_and(|tls| tls.starts_with("TLSv1.3,")));
}

#[test]
fn progress_is_reported_for_each_interval() {
    let server = Server::start(|_| hello());
    let mut stream = stream(&server.url("/"));
    stream.pace = open(100.0, 1000);
    stream.connections = 10;
    stream.keep_alive = true;
    let plan = Plan {
        streams: vec![stream],
        interval: Duration::from_millis(200),
    };
    let mut told = 0;
    let measured = run(&plan, None, &Stop::default(), &mut |now| {
        assert_eq!(now.stream, 0);
        told += now.interval.responses();
    });
    assert!((80..=100).contains(&told), "{told}");
    let measured = measured.expect("the run begins");
    let points = measured.streams[0].timeline.points();
    assert!(points.len() >= 5);
    assert_eq!(points.iter().map(|point| point.good).sum::<u64>(), 100);
}
