//! The program as its user sees it: flags, messages, signals and exit statuses.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "cli/confine.rs"]
mod confine;
#[path = "cli/isolation.rs"]
mod isolation;
#[path = "cli/process.rs"]
mod process;
mod program;
#[path = "cli/psgi.rs"]
mod psgi;
#[path = "cli/sockets.rs"]
mod sockets;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use program::{Running, command, output, read_to_end};
use rustix::process::Signal;
use tokio_tungstenite::tungstenite;

pub(crate) fn help(arguments: &[&str]) -> String {
    let output = output(arguments);
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the message with which the program rejects `arguments`.
pub(crate) fn error_of(arguments: &[&str]) -> String {
    let output = output(arguments);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    message
}

/// Starts an upstream, and a request through `/proxy` that waits for it: it is under way once the
/// upstream has its connection.
fn request_under_way(flags: &[&str]) -> (Running, TcpStream, TcpStream) {
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", upstream.local_addr().unwrap());
    let server = Running::serve(&[&["--upstream", &url], flags].concat());
    let client = server.request("/proxy");
    let (mut upstream, _) = upstream.accept().unwrap();
    assert!(upstream.read(&mut [0; 1024]).unwrap() > 0);
    (server, client, upstream)
}

#[test]
fn help_names_commands_and_exit_statuses() {
    let help = help(&["--help"]);
    for text in ["serve", "completions", "Exit statuses:"] {
        assert!(help.contains(text), "{text}");
    }
}

#[test]
fn help_of_serve_gives_flags_defaults_units_and_examples() {
    let help = help(&["serve", "--help"]);
    let texts = [
        "--listen",
        "[default: 127.0.0.1:5000]",
        "GREENROOM_LISTEN",
        "--head-timeout",
        "[default: 64KiB]",
        "64kB (of 1,000)",
        "Examples:",
        "Exit statuses:",
    ];
    for text in texts {
        assert!(help.contains(text), "{text}");
    }
}

#[test]
fn completions_know_the_flags() {
    assert!(help(&["completions", "bash"]).contains("--drain-deadline"));
}

#[test]
fn wrong_command_lines_are_refused_with_what_is_allowed() {
    let cases: [(&[&str], &str); 8] = [
        (&["serv"], "'serve'"),
        (&["serve", "--lisen"], "'--listen'"),
        (&["serve", "--listen", "example.org:80"], "[::1]:5000"),
        (&["serve", "--loops", "0"], "--loops"),
        (&["serve", "--head-timeout", "10"], "10s"),
        (&["serve", "--body-bytes-max", "many"], "64KiB"),
        (&["serve", "--upstream", "https://127.0.0.1/"], "http://"),
        (&["serve", "--fields-max", "257"], "1 to 256"),
    ];
    for (arguments, allowed) in cases {
        let message = error_of(arguments);
        assert!(message.contains(allowed), "{arguments:?}: {message}");
    }
}

#[test]
fn taken_address_is_refused_with_advice() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let message = error_of(&["serve", "--listen", &address]);
    assert!(message.contains(&address), "{message}");
    assert!(
        message.contains("Another program listens there"),
        "{message}"
    );
}

#[test]
fn second_server_on_the_same_address_is_refused() {
    let first = Running::serve(&[]);
    let message = error_of(&["serve", "--listen", &first.address]);
    assert!(message.contains("Another program"), "{message}");
}

#[test]
fn foreign_address_is_refused() {
    let message = error_of(&["serve", "--listen", "192.0.2.1:5000"]);
    assert!(message.contains("no such address"), "{message}");
}

#[test]
fn either_signal_ends_an_idle_server_with_status_0() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = Running::serve(&[]);
        let response = server.get("/hello");
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
        assert!(response.ends_with("\r\n\r\nHello, world!\n"), "{response}");
        server.signal(signal);
        assert_eq!(server.wait().code(), Some(0));
    }
}

#[test]
fn hangup_ends_the_demo_application_as_it_ends_other_programs_and_reload_sends_it_none() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pid");
    let path = file.to_str().unwrap();
    // Under `nohup` the program inherits that the signal is ignored, which is right, and no case
    // for this.
    let serve = command(&["serve", "--listen", "127.0.0.1:0", "--pid", path]);
    let mut program = Command::new("/usr/bin/env");
    program.arg("--default-signal=HUP").arg(serve.get_program());
    let mut server = Running::start(program.args(serve.get_args()).env_clear());
    let refused = output(&["reload", "--pid", path]);
    let message = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{message}");
    assert!(message.contains("no use for SIGHUP"), "{message}");
    assert!(server.get("/hello").ends_with("Hello, world!\n"));
    server.signal(Signal::HUP);
    assert_eq!(server.wait().signal(), Some(Signal::HUP.as_raw()));
}

#[test]
fn reload_signals_nobody_who_is_no_server() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut sleeping = Command::new("/usr/bin/env");
    sleeping.args(["--default-signal=HUP", "sleep", "600"]);
    let mut sleeping = sleeping.spawn().unwrap();
    std::fs::write(&file, sleeping.id().to_string()).unwrap();
    let path = file.path().to_str().unwrap();
    let refused = output(&["reload", "--pid", path]);
    let message = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{message}");
    assert!(message.contains("reloads nothing at SIGHUP"), "{message}");
    assert!(message.contains(path), "{message}");
    assert!(sleeping.try_wait().unwrap().is_none());
    sleeping.kill().unwrap();
    sleeping.wait().unwrap();
}

#[test]
fn drain_finishes_what_is_under_way() {
    let (mut server, client, mut upstream) = request_under_way(&[]);
    server.signal(Signal::TERM);
    server.wait_for_log("draining");
    upstream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate")
        .unwrap();
    let response = read_to_end(client);
    assert!(response.ends_with("late"), "{response}");
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn drain_closes_websockets() {
    let mut server = Running::serve(&[]);
    let url = format!("ws://{}/ws/echo", server.address);
    let (mut socket, _) = tungstenite::client(url, server.connect()).unwrap();
    socket.send("hello".into()).unwrap();
    assert_eq!(socket.read().unwrap(), "hello".into());
    server.signal(Signal::TERM);
    let tungstenite::Message::Close(Some(frame)) = socket.read().unwrap() else {
        panic!("no close frame with a code");
    };
    assert_eq!(u16::from(frame.code), 1012);
    // The client's own close frame goes out with the next call.
    assert!(socket.read().is_err());
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn drain_deadline_cuts_off_and_names_whom() {
    let (mut server, _client, _upstream) = request_under_way(&["--drain-deadline", "0s"]);
    server.signal(Signal::TERM);
    let line = server.wait_for_log(" route=");
    assert!(
        line.contains("/proxy") && line.contains("127.0.0.1"),
        "{line}"
    );
    assert_eq!(server.wait().code(), Some(1));
}

#[test]
fn second_signal_ends_at_once() {
    let (mut server, _client, _upstream) = request_under_way(&[]);
    server.signal(Signal::INT);
    server.wait_for_log("draining");
    server.signal(Signal::INT);
    server.wait_for_log(" route=");
    assert_eq!(server.wait().code(), Some(1));
}

#[test]
fn access_log_can_be_turned_off() {
    for (flags, lines) in [(&[][..], 1), (&["--no-access-log"][..], 0)] {
        let mut server = Running::serve(flags);
        server.get("/pixel/advertisement");
        server.signal(Signal::TERM);
        server.wait();
        let log = server.rest_of_log();
        let found = log.iter().filter(|line| line.contains("/pixel/"));
        assert_eq!(found.count(), lines, "{log:#?}");
    }
}

#[test]
fn json_log_has_one_object_a_line() {
    let mut server = Running::serve(&["--log-format", "json"]);
    server.get("/hello");
    server.signal(Signal::TERM);
    server.wait();
    let log = server.rest_of_log();
    assert!(!log.is_empty());
    for line in log {
        let value: serde_json::Value = serde_json::from_str(&line).expect(&line);
        assert!(value["level"].is_string(), "{line}");
    }
}

#[test]
fn environment_gives_addresses_and_flags_win() {
    let addresses = "127.0.0.1:0,[::1]:0";
    let mut both = command(&["serve"]);
    let both = Running::start(both.env("GREENROOM_LISTEN", addresses));
    assert!(both.address.starts_with("127.0.0.1:"));
    both.wait_for_log("http://[::1]:");
    let mut one = command(&["serve", "--listen", "127.0.0.2:0"]);
    let one = Running::start(one.env("GREENROOM_LISTEN", addresses));
    assert!(one.address.starts_with("127.0.0.2:"));
}

#[test]
fn unix_socket_is_served() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("greenroom.sock");
    let listen = format!("unix:{}", path.display());
    let server = Running::start(&mut command(&["serve", "--listen", &listen]));
    assert_eq!(server.address, listen);
    let mut connection = UnixStream::connect(&path).unwrap();
    connection
        .write_all(b"GET /health HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
        .unwrap();
    assert!(read_to_end(connection).ends_with("ok\n"));
}
