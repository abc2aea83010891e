//! Clients of each kind at an upgrade.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tokio_tungstenite::tungstenite;

use crate::program::read_to_end;
use crate::versions::{Kept, PATIENCE, Versions};

/// An upstream that keeps its first request waiting, the flags for it, and that request.
fn slow_upstream() -> (TcpListener, String) {
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", upstream.local_addr().unwrap());
    (upstream, url)
}

fn accept(upstream: &TcpListener) -> TcpStream {
    let (mut connection, _) = upstream.accept().unwrap();
    assert!(connection.read(&mut [0; 1_024]).unwrap() > 0);
    connection
}

fn is_last(response: &str) -> bool {
    response.to_ascii_lowercase().contains("connection: close")
}

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nlate";

/// Sends requests until `done`, each on a connection of its own or on one that is kept, and returns
/// their number.
fn ask_on(address: &str, is_kept: bool, done: &AtomicBool) -> usize {
    let mut responses = 0;
    while !done.load(Ordering::Relaxed) {
        let mut connection = Kept::connect(address);
        // Until it is told by `Connection: close`, or ended in order while it is idle.
        while let Some(response) = connection.get("/hello") {
            assert!(response.starts_with("HTTP/1.1 200"), "{response}");
            responses += 1;
            if !is_kept || is_last(&response) || done.load(Ordering::Relaxed) {
                break;
            }
        }
    }
    responses
}

#[test]
fn no_request_is_lost_in_ten_upgrades_in_a_row() {
    let mut versions = Versions::serve(&["--no-access-log"]);
    let address = versions.first.address.clone();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let clients: Vec<_> = [true, false, true, false]
            .into_iter()
            .map(|is_kept| {
                scope.spawn({
                    let (address, done) = (&address, &done);
                    move || ask_on(address, is_kept, done)
                })
            })
            .collect();
        for _ in 0..10 {
            versions.upgrade();
        }
        done.store(true, Ordering::Relaxed);
        for client in clients {
            assert!(client.join().unwrap() > 0);
        }
    });
}

#[test]
fn what_waits_in_the_queue_is_served_by_the_next_version() {
    for loops in ["1", "3"] {
        let (upstream, url) = slow_upstream();
        let flags = [
            "--connections-max",
            "1",
            "--upstream",
            &url,
            "--loops",
            loops,
        ];
        let mut versions = Versions::serve(&flags);
        // The first version has no room for another connection while this one lasts.
        let first = versions.first.request("/proxy");
        let mut late = accept(&upstream);
        let waiting: Vec<_> = (0..8).map(|_| versions.first.request("/hello")).collect();
        versions.upgrade();
        for client in waiting {
            assert!(read_to_end(client).ends_with("Hello, world!\n"));
        }
        late.write_all(RESPONSE).unwrap();
        assert!(read_to_end(first).ends_with("late"));
        assert_eq!(versions.first.wait().code(), Some(0));
    }
}

#[test]
fn a_request_under_way_gets_its_response_which_is_the_last() {
    let (upstream, url) = slow_upstream();
    let mut versions = Versions::serve(&["--upstream", &url]);
    let mut client = Kept::connect(&versions.first.address);
    let request = "GET /proxy HTTP/1.1\r\nHost: here\r\n\r\n";
    client.send(request);
    let mut late = accept(&upstream);
    versions.upgrade();
    versions.first.wait_for_log("took over");
    assert!(versions.get("/hello").ends_with("Hello, world!\n"));
    late.write_all(RESPONSE).unwrap();
    let response = client.response().expect("it comes");
    assert!(response.ends_with("late"), "{response}");
    assert!(is_last(&response), "{response}");
    assert_eq!(versions.first.wait().code(), Some(0));
}

#[test]
fn a_websocket_is_told_that_the_service_restarts() {
    let mut versions = Versions::serve(&[]);
    let stream = TcpStream::connect(&versions.first.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let url = format!("ws://{}/ws/echo", versions.first.address);
    let (mut socket, _) = tungstenite::client(url, stream).unwrap();
    socket.send("hello".into()).unwrap();
    assert_eq!(socket.read().unwrap(), "hello".into());
    versions.upgrade();
    let frame = match socket.read().unwrap() {
        tungstenite::Message::Close(Some(frame)) => frame,
        other => panic!("{other:?}"),
    };
    assert_eq!(u16::from(frame.code), 1012);
    // The reply.
    let _closed = socket.flush();
    assert_eq!(versions.first.wait().code(), Some(0));
}

/// Returns the type of the next frame of HTTP/2 (RFC 9113, 4.1).
fn frame_type(connection: &mut TcpStream) -> u8 {
    let mut head = [0; 9];
    connection.read_exact(&mut head).unwrap();
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; length as usize];
    connection.read_exact(&mut payload).unwrap();
    head[3]
}

#[test]
fn a_connection_of_http2_gets_goaway() {
    const SETTINGS: u8 = 4;
    const GOAWAY: u8 = 7;
    let mut versions = Versions::serve(&[]);
    let mut connection = TcpStream::connect(&versions.first.address).unwrap();
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    connection
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .unwrap();
    connection
        .write_all(&[0, 0, 0, SETTINGS, 0, 0, 0, 0, 0])
        .unwrap();
    assert_eq!(frame_type(&mut connection), SETTINGS);
    versions.upgrade();
    while frame_type(&mut connection) != GOAWAY {}
    drop(connection);
    assert_eq!(versions.first.wait().code(), Some(0));
}
