//! The messages to a service manager, at a socket as systemd has one.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;

use crate::program::{Running, address, command, read_to_end};
use crate::versions::{PATIENCE, Versions};

/// A service manager's socket.
struct Manager(UnixDatagram);

impl Manager {
    /// Waits for a message with all these lines, and returns it.
    fn hears(&self, lines: &[&str]) -> String {
        let mut bytes = [0; 4_096];
        loop {
            let read = self.0.recv(&mut bytes).expect("a message comes");
            let message = String::from_utf8_lossy(&bytes[..read]).into_owned();
            let has = |line: &&str| message.lines().any(|said| said == *line);
            if lines.iter().all(has) {
                return message;
            }
        }
    }
}

#[test]
fn the_manager_learns_of_start_upgrades_watchdog_and_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notify");
    let manager = Manager(UnixDatagram::bind(&path).unwrap());
    manager.0.set_read_timeout(Some(PATIENCE)).unwrap();
    let program = directory.path().join("greenroom");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_greenroom"), &program).unwrap();
    let mut serve = std::process::Command::new(&program);
    serve.args(["serve", "-l", "127.0.0.1:0"]).env_clear();
    serve.env("NOTIFY_SOCKET", &path);
    serve.env("WATCHDOG_USEC", "1000000");
    let mut versions = Versions::of(Running::start(&mut serve));
    versions.directory = directory;
    manager.hears(&["READY=1", "STATUS=serving"]);
    manager.hears(&["WATCHDOG=1"]);
    manager.hears(&["WATCHDOG=1"]);

    versions.replace_by("exit 7");
    versions.fails();
    let message = manager.hears(&["RELOADING=1"]);
    let (_, since) = message.split_once("MONOTONIC_USEC=").unwrap();
    assert!(since.lines().next().unwrap().parse::<u64>().unwrap() > 0);
    let message = manager.hears(&["READY=1"]);
    assert!(message.contains("exit status: 7"), "{message}");

    versions.restore();
    versions.upgrade();
    manager.hears(&["RELOADING=1"]);
    manager.hears(&[&format!("MAINPID={}", versions.pid), "READY=1"]);
    assert_eq!(versions.first.wait().code(), Some(0));
    manager.hears(&["WATCHDOG=1"]);
    versions.end();
    manager.hears(&["STOPPING=1"]);
}

#[test]
fn the_manager_learns_of_a_drain_by_the_operators_action() {
    let directory = tempfile::tempdir().unwrap();
    let (path, token) = (
        directory.path().join("notify"),
        directory.path().join("token"),
    );
    let manager = Manager(UnixDatagram::bind(&path).unwrap());
    manager.0.set_read_timeout(Some(PATIENCE)).unwrap();
    fs::write(&token, "an-operator's-token\n").unwrap();
    let mut serve = command(&["serve", "-l", "127.0.0.1:0", "--status-listen=127.0.0.1:0"]);
    serve.arg("--admin-token-file").arg(&token);
    let mut server = Running::start(serve.env("NOTIFY_SOCKET", &path));
    let admin = address(&server.wait_for_log("status at"));
    manager.hears(&["READY=1"]);
    let mut connection = TcpStream::connect(&admin).unwrap();
    write!(
        connection,
        "POST /greenroom/actions/drain HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\
         Authorization: Bearer an-operator's-token\r\nContent-Length: 0\r\n\r\n"
    )
    .unwrap();
    let response = read_to_end(connection);
    assert!(response.contains("the server drains"), "{response}");
    manager.hears(&["STOPPING=1"]);
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn a_variable_of_the_watchdog_that_makes_no_sense_is_refused() {
    let mut serve = command(&["serve", "-l", "127.0.0.1:0"]);
    let output = serve.env("WATCHDOG_USEC", "soon").output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("WATCHDOG_USEC=soon"), "{message}");
}
