//! HTTP/2 and WebSocket from a plan to a measurement.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use greenroom_load::plan::{End, Pace, Plan, Protocol, Schedule, StreamPlan};
use greenroom_load::record::FailureKind;
use greenroom_load::run::{Measurement, Stop, run};
use http::Response;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::time::sleep;
use tokio_tungstenite::accept_async;

/// Serves each connection in a task, until the test ends.
fn serve<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.set_nonblocking(true).expect("a socket");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async move {
            let listener = TcpListener::from_std(listener).expect("a listener");
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream));
            }
        });
    });
    address
}

async fn hello(stream: TcpStream) {
    let mut connection = h2::server::handshake(stream).await.expect("HTTP/2");
    while let Some(Ok((_, mut respond))) = connection.accept().await {
        if let Ok(mut body) = respond.send_response(Response::new(()), false) {
            let _ = body.send_data(Bytes::from_static(b"hello"), true);
        }
    }
}

/// Takes requests and never responds.
async fn silent(stream: TcpStream) {
    let mut connection = h2::server::handshake(stream).await.expect("HTTP/2");
    let mut waiting = Vec::new();
    while let Some(Ok(request)) = connection.accept().await {
        waiting.push(request);
    }
}

/// Responds to every request but the first, each after a while.
async fn silent_at_first(stream: TcpStream) {
    let mut connection = h2::server::handshake(stream).await.expect("HTTP/2");
    let _waiting = connection.accept().await;
    while let Some(Ok((_, mut respond))) = connection.accept().await {
        tokio::spawn(async move {
            sleep(Duration::from_millis(50)).await;
            let _ = respond.send_response(Response::new(()), true);
        });
    }
}

async fn echo(stream: TcpStream) {
    let mut socket = accept_async(stream).await.expect("an opening");
    while let Some(Ok(message)) = socket.next().await {
        if socket.send(message).await.is_err() {
            return;
        }
    }
}

fn measure(plan: StreamPlan) -> Measurement {
    let plan = Plan {
        streams: vec![plan],
        interval: Duration::from_millis(50),
    };
    run(&plan, None, &Stop::default(), &mut |_| ()).expect("the plan can be carried out")
}

fn stream(url: &str, protocol: Protocol) -> StreamPlan {
    StreamPlan {
        protocol,
        keep_alive: true,
        threads: 2,
        ..StreamPlan::new(url.parse().expect("a URL"))
    }
}

#[test]
fn http2_in_a_closed_loop_of_two_threads() {
    let url = format!("http://{}/", serve(hello));
    let mut plan = StreamPlan {
        connections: 4,
        in_flight_max: 5,
        ..stream(&url, Protocol::Http2)
    };
    plan.end.requests = Some(101);
    let measurement = measure(plan);
    let stream = &measurement.streams[0];
    assert_eq!((stream.tally.responses(), stream.failed()), (101, 0));
    assert_eq!(stream.tally.counts.connections, 4);
    assert_eq!(stream.tally.counts.body_bytes, 505);
    assert_eq!(stream.tally.connect.count(), 4);
    let first = stream.first.as_ref().expect("there was one");
    assert_eq!(first.body, b"hello");
}

/// The connection of the first request that comes is silent, the others are not.
fn first_is_silent() -> SocketAddr {
    let connections = AtomicU64::new(0);
    serve(move |stream| {
        let is_first = connections.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            if is_first {
                silent(stream).await;
            } else {
                hello(stream).await;
            }
        }
    })
}

#[test]
fn an_http2_connection_that_is_silent_is_replaced() {
    let url = format!("http://{}/", first_is_silent());
    let mut plan = StreamPlan {
        threads: 1,
        in_flight_max: 3,
        timeout: Duration::from_secs(2),
        ..stream(&url, Protocol::Http2)
    };
    plan.end.requests = Some(10);
    let measurement = measure(plan);
    let tally = &measurement.streams[0].tally;
    assert_eq!(tally.failures.count(FailureKind::Timeout), 3);
    assert_eq!((tally.responses(), tally.failures.total()), (7, 3));
    assert_eq!(tally.counts.connections, 2);
}

#[test]
fn an_open_loop_goes_on_without_an_http2_connection_that_is_silent() {
    let url = format!("http://{}/", first_is_silent());
    let schedule = Schedule::constant(20.0, Duration::from_secs(6)).expect("a schedule");
    let mut plan = StreamPlan {
        threads: 1,
        in_flight_max: 100,
        pace: Pace::Open(schedule),
        timeout: Duration::from_secs(2),
        ..stream(&url, Protocol::Http2)
    };
    plan.end.requests = None;
    let measurement = measure(plan);
    let tally = &measurement.streams[0].tally;
    assert!(tally.responses() > 0, "there is another connection");
    assert_eq!(tally.counts.connections, 2);
    assert_eq!(tally.responses() + tally.failures.total(), 120);
}

#[test]
fn an_http2_connection_with_one_slow_request_is_kept() {
    let url = format!("http://{}/", serve(silent_at_first));
    let mut plan = StreamPlan {
        threads: 1,
        in_flight_max: 2,
        timeout: Duration::from_secs(2),
        ..stream(&url, Protocol::Http2)
    };
    plan.end = End {
        requests: None,
        duration: Some(Duration::from_secs(3)),
    };
    let measurement = measure(plan);
    let tally = &measurement.streams[0].tally;
    assert_eq!(tally.failures.count(FailureKind::Timeout), 1);
    assert_eq!(tally.counts.connections, 1);
}

#[test]
fn websocket_in_an_open_loop_of_two_threads() {
    let url = format!("ws://{}/", serve(echo));
    let schedule = Schedule::constant(500.0, Duration::from_millis(200)).expect("a schedule");
    let mut plan = StreamPlan {
        connections: 100,
        pace: Pace::Open(schedule),
        ..stream(&url, Protocol::WebSocket)
    };
    plan.end.requests = None;
    let measurement = measure(plan);
    let stream = &measurement.streams[0];
    assert_eq!((stream.tally.responses(), stream.failed()), (100, 0));
    assert_eq!(stream.tally.counts.due, 100);
    assert!(!stream.missed_its_rate());
}

#[test]
fn a_request_that_cannot_be_written_is_refused_before_the_run() {
    let mut plan = stream("http://127.0.0.1:9/", Protocol::Http2);
    plan.request.method = "GE T".to_owned();
    let plan = Plan {
        streams: vec![plan],
        interval: Duration::from_secs(1),
    };
    let refused = run(&plan, None, &Stop::default(), &mut |_| ());
    let error = refused.expect_err("no such method").to_string();
    assert!(error.contains("GE T"), "{error}");
}

#[test]
fn a_server_that_is_gone_ends_the_run() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    drop(listener);
    let mut plan = stream(&format!("ws://{address}/"), Protocol::WebSocket);
    plan.connections = 2;
    plan.end.requests = Some(1000);
    let measurement = measure(plan);
    assert!(measurement.gave_up);
    let failures = &measurement.streams[0].tally.failures;
    assert_eq!(failures.count(FailureKind::Refused), 20);
}
