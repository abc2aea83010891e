//! `greenroom serve` with handlers that block and compute, none of which says where it runs.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::program::Running;

/// The time-out of a condition; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_mins(1);

/// The number of rounds of 64 requests after which a route should have proven short.
const ROUNDS_MAX: usize = 30;

/// A connection that is kept from one request to the next.
struct Client(TcpStream);

impl Client {
    fn connect(server: &Running) -> Self {
        let stream = TcpStream::connect(&server.address).expect("the server listens");
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("it is longer than none");
        Self(stream)
    }

    fn ask(&mut self, path: &str) {
        // In one piece: the system would keep a second one back until the first is confirmed.
        let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n");
        self.0
            .write_all(request.as_bytes())
            .expect("it can be sent");
    }

    /// Returns the next response's head and body, which must be in one piece.
    fn response(&mut self) -> String {
        let mut bytes = vec![0; 65_536];
        let length = self.0.read(&mut bytes).expect("a response comes");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    fn get(&mut self, path: &str) -> String {
        self.ask(path);
        self.response()
    }

    /// Returns `true` if nothing has come yet.
    fn is_waiting(&mut self) -> bool {
        self.0.set_nonblocking(true).expect("it can be set");
        let is_waiting = self.0.peek(&mut [0]).is_err();
        self.0.set_nonblocking(false).expect("it can be set");
        is_waiting
    }
}

fn placed(client: &mut Client, path: &str) -> String {
    let response = client.get("/greenroom/status");
    let (_, body) = response
        .split_once("\r\n\r\n")
        .expect("a response has a head");
    let status: serde_json::Value = serde_json::from_str(body).expect("it is JSON");
    let routes = status["routes"].as_array().expect("a list");
    let route = routes.iter().find(|route| route["path"] == path);
    let placed = route.and_then(|route| route["placed"].as_str());
    placed.unwrap_or_default().to_owned()
}

#[test]
fn hello_is_served_while_more_handlers_block_than_there_are_threads_for_computing() {
    let server = Running::serve(&[]);
    let mut blocked: Vec<_> = (0..64).map(|_| Client::connect(&server)).collect();
    for client in &mut blocked {
        client.ask("/block/10000");
    }
    let mut hello = Client::connect(&server);
    for _ in 0..100 {
        assert!(hello.get("/hello").ends_with("Hello, world!\n"));
    }
    assert!(blocked.iter_mut().all(Client::is_waiting));
}

/// One runs and two wait at most, so five of eight are rejected at least, and perhaps one more.
#[test]
fn a_full_stage_refuses_at_once_and_keeps_the_connection() {
    let server = Running::serve(&[
        "--stage-threads=1",
        "--blocking-threads-max=1",
        "--queue-max=2",
        "--queue-wait-max=1m",
    ]);
    // The first requests of a route are admitted, whatever its priority.
    let mut client = Client::connect(&server);
    for _ in 0..8 {
        client.get("/block/2");
    }
    let mut clients: Vec<_> = (0..8).map(|_| Client::connect(&server)).collect();
    for client in &mut clients {
        client.ask("/block/2000");
    }
    let mut refused = Vec::new();
    while refused.len() < 5 {
        refused.extend(clients.extract_if(.., |client| !client.is_waiting()));
    }
    for client in &mut refused {
        let response = client.response();
        assert!(
            response.starts_with("HTTP/1.1 503 Service Unavailable\r\n"),
            "{response}"
        );
        assert!(response.contains("\r\nretry-after: "), "{response}");
        assert!(!response.contains("onnection: close"), "{response}");
    }
    // Requests of operators are admitted all the same, and on a connection that got a rejection.
    let health = refused[0].get("/health");
    assert!(health.ends_with("ok\n"), "{health}");
    let responses: Vec<_> = clients.iter_mut().map(Client::response).collect();
    let is_blocked = |response: &&String| response.ends_with("blocked for 2000 ms\n");
    assert!(
        responses.iter().filter(is_blocked).count() >= 2,
        "{responses:?}"
    );
}

/// On a machine that is too slow for the route to become inline in time, it is on its stage from
/// the first.
#[test]
fn a_route_that_turns_long_goes_back_to_its_stage() {
    let server = Running::serve(&[]);
    let mut client = Client::connect(&server);
    for _ in 0..ROUNDS_MAX {
        for _ in 0..64 {
            assert!(client.get("/fib/10").ends_with("55\n"));
        }
        if placed(&mut client, "/fib/{n}") == "auto_inline" {
            break;
        }
    }
    assert!(client.get("/fib/100000").starts_with("HTTP/1.1 200"));
    assert_eq!(placed(&mut client, "/fib/{n}"), "auto_staged");
}
