//! HTTP/2 and WebSocket from a plan to a measurement.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use greenroom_load::plan::{Pace, Plan, Protocol, Schedule, StreamPlan};
use greenroom_load::record::FailureKind;
use greenroom_load::run::{Measurement, Stop, run};
use http::Response;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
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
