//! Clients that die, that close half of their connection, and more of them than descriptors:
//! nothing leaks, nothing ends, and `/hello` gets its response.

mod outside;

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use outside::http::{self, HELLO, assert_hello};
use outside::probe::Probe;
use outside::server::Server;
use outside::{tools, wait};
use rustix::net::sockopt;

/// The time-out of one exchange with a server that has more to do.
const RESPONSE_DEADLINE: Duration = Duration::from_mins(1);

const CURLS: usize = 50;

#[test]
fn uploading_clients_that_are_killed_leave_nothing_behind() {
    let file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    file.as_file()
        .set_len(1024 * 1024)
        .expect("it can be grown");
    let body = format!("@{}", file.path().display());
    kill_curls(|server| {
        let mut curl = slow_curl();
        curl.args(["--header", "Expect:", "--data-binary", &body]);
        curl.arg(server.url("/upload"));
        curl
    });
}

#[test]
fn downloading_clients_that_are_killed_leave_nothing_behind() {
    kill_curls(|server| {
        let mut curl = slow_curl();
        curl.arg(server.url("/bytes/1000000000"));
        curl
    });
}

fn slow_curl() -> Command {
    let mut command = Command::new(tools::system("curl"));
    command
        .args([
            "--disable",
            "--silent",
            "--noproxy",
            "*",
            "--limit-rate",
            "20k",
        ])
        .args(["--max-time", "60", "--output", "/dev/null"]);
    command
}

fn kill_curls(curl: impl Fn(&Server) -> Command) {
    let mut server = Server::start();
    let baseline = server.descriptors_at_rest();

    let mut curls: Vec<Child> = (0..CURLS)
        .map(|_| {
            let mut command = curl(&server);
            command.stdin(Stdio::null()).stdout(Stdio::null());
            command.spawn().expect("curl can be started")
        })
        .collect();
    wait::until(
        "all clients connected",
        Duration::from_secs(10),
        || server.descriptors(),
        |descriptors| *descriptors >= baseline + CURLS,
    );
    for curl in &mut curls {
        curl.kill().expect("curl can be killed");
        curl.wait().expect("curl is our child");
    }

    server.await_descriptors(baseline);
    assert_hello(server.address());
    server.assert_sound();
}

const HALF_CLOSED: usize = 100;
/// The shortest time for which the server goes on with a request whose client has finished writing.
const HALF_CLOSED_MIN: Duration = Duration::from_millis(250);

#[test]
fn a_client_that_has_finished_writing_is_served() {
    let mut server = Server::start();
    let address = server.address();
    let baseline = server.descriptors_at_rest();
    for request in [
        http::request(address, "/hello", "keep-alive"),
        http::request(address, "/bytes/1000000", "keep-alive"),
        format!("POST /upload HTTP/1.1\r\nHost: {address}\r\nContent-Length: 2\r\n\r\nhi"),
    ] {
        let mut successes = 0;
        for _ in 0..HALF_CLOSED {
            let begin = Instant::now();
            let response = exchange_half_closed(address, request.as_bytes());
            let is_served = response.starts_with("HTTP/1.1 200 OK\r\n");
            successes += usize::from(is_served);
            // On a busy machine.
            let took_too_long = response.is_empty() && begin.elapsed() >= HALF_CLOSED_MIN;
            assert!(is_served || took_too_long, "{response}");
        }
        assert!(successes > 0);
    }
    server.await_descriptors(baseline);
    server.assert_sound();
}

#[test]
fn a_client_that_stops_within_a_request_is_let_go() {
    let mut server = Server::start();
    let address = server.address();
    let baseline = server.descriptors_at_rest();
    for request in [
        String::new(),
        "GE".to_owned(),
        format!("GET /hello HTTP/1.1\r\nHost: {address}\r\n"),
        format!("POST /upload HTTP/1.1\r\nHost: {address}\r\nContent-Length: 9\r\n\r\nhi"),
        format!("POST /upload HTTP/1.1\r\nHost: {address}\r\nTransfer-Encoding: chunked\r\n\r\n9"),
    ] {
        for _ in 0..HALF_CLOSED {
            let response = exchange_half_closed(address, request.as_bytes());
            assert!(
                !response.starts_with("HTTP/1.1 200"),
                "{request:?}: {response}"
            );
        }
    }
    server.await_descriptors(baseline);
    assert_hello(address);
    server.assert_sound();
}

/// Sends, closes this direction, and reads until the server closes the other.
fn exchange_half_closed(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = connect(address).expect("the server accepts");
    stream.write_all(request).expect("the request can be sent");
    stream.shutdown(Shutdown::Write).expect("it can be closed");
    let mut response = Vec::new();
    stream
        .read_to_end(&mut response)
        .unwrap_or_else(|error| panic!("after {:?}: {error}", String::from_utf8_lossy(request)));
    String::from_utf8_lossy(&response).into_owned()
}

const DESCRIPTORS_MAX: u32 = 1024;
const CONNECTS: usize = 20_000;
const WARM_UP_CONNECTS: usize = 2_000;
const THREADS: usize = 8;

/// The number of connections that each thread keeps open: all together, 1,600 against 1,024
/// descriptors.
const HELD_MAX: usize = 200;

/// The growth of the server after the warm-up, which has allocated everything that is allocated
/// once. A leak of one small buffer for each connection would exceed it.
const GROWTH_MAX_KIB: u64 = 4 * 1024;

#[test]
fn twenty_thousand_connects_with_1024_descriptors_leave_nothing_behind() {
    let mut server = Server::with_descriptors_max(DESCRIPTORS_MAX);
    let address = server.address();
    let baseline = server.descriptors_at_rest();
    crowd(address, WARM_UP_CONNECTS);
    server.await_descriptors(baseline);
    let warm_kib = server.resident_kib();

    let successes = crowd(address, CONNECTS);

    assert_eq!(successes, CONNECTS / KINDS.len() * 2, "requests served");
    server.await_descriptors(baseline);
    let probe = Probe::start(address);
    let grown_kib = server.resident_kib().saturating_sub(warm_kib);
    assert!(
        grown_kib <= GROWTH_MAX_KIB,
        "grown by {grown_kib} KiB from {warm_kib} KiB"
    );
    let tally = probe.finish();
    assert!(tally.failures.is_empty(), "{tally:?}");
    assert_hello(address);
    server.assert_sound();
}

/// The course of a connection.
#[derive(Clone, Copy)]
enum Kind {
    /// Sends nothing and stays.
    Silent,
    /// Sends a part of a head and stays.
    Stuck,
    /// Gets one response and leaves.
    Asking,
    /// Gets one response and stays, idle.
    Idle,
    /// Sends a request, and resets the connection before the response.
    Abandoned,
}

const KINDS: [Kind; 5] = [
    Kind::Silent,
    Kind::Stuck,
    Kind::Asking,
    Kind::Idle,
    Kind::Abandoned,
];

/// Makes this number of connections from a few threads, and returns the number of those that got
/// their response.
fn crowd(address: SocketAddr, connects: usize) -> usize {
    let threads: Vec<_> = (0..THREADS)
        .map(|_| thread::spawn(move || visit(address, connects / THREADS)))
        .collect();
    threads
        .into_iter()
        .map(|thread| thread.join().expect("no connection fails"))
        .sum()
}

fn visit(address: SocketAddr, connects: usize) -> usize {
    let mut held = VecDeque::new();
    let mut successes = 0;
    for kind in KINDS.iter().cycle().take(connects) {
        let mut stream = connect(address).expect("the server accepts");
        let stays = match kind {
            Kind::Silent => true,
            Kind::Stuck => stream.write_all(b"GET /hello HT").is_ok(),
            Kind::Asking | Kind::Idle => {
                ask(&mut stream, address).expect("the request gets its response");
                successes += 1;
                matches!(kind, Kind::Idle)
            }
            Kind::Abandoned => {
                abandon(&stream, address).expect("the connection can be reset");
                false
            }
        };
        if stays {
            held.push_back(stream);
        }
        if held.len() > HELD_MAX {
            held.pop_front();
        }
    }
    successes
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, RESPONSE_DEADLINE)?;
    stream.set_read_timeout(Some(RESPONSE_DEADLINE))?;
    stream.set_write_timeout(Some(RESPONSE_DEADLINE))?;
    Ok(stream)
}

fn ask(stream: &mut TcpStream, address: SocketAddr) -> io::Result<()> {
    stream.write_all(http::request(address, "/hello", "keep-alive").as_bytes())?;
    let mut response = Vec::new();
    let mut piece = [0; 1024];
    while !response.ends_with(HELLO.as_bytes()) {
        match stream.read(&mut piece)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => response.extend_from_slice(&piece[..length]),
        }
    }
    if !response.starts_with(b"HTTP/1.1 200 OK\r\n") {
        return Err(io::Error::other(String::from_utf8_lossy(&response)));
    }
    Ok(())
}

/// Resets the connection, by closing it with a lingering time of zero.
fn abandon(mut stream: &TcpStream, address: SocketAddr) -> io::Result<()> {
    sockopt::set_socket_linger(stream, Some(Duration::ZERO))?;
    stream.write_all(http::request(address, "/bytes/100000", "keep-alive").as_bytes())
}
