//! Listening sockets that are passed on, as `start_server` and systemd do it, and faults in them.

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::program::{Running, command, read_to_end};

/// A shell's setup that passes the socket to this process.
const FOR_US: &str = "export LISTEN_FDS=1 LISTEN_PID=$$";

/// Returns the program as it is started with `socket` as its descriptor 3, once a shell has done
/// `setup`.
fn passed(socket: impl Into<OwnedFd>, setup: &str, flags: &[&str]) -> Command {
    let program = command(&[&["serve"], flags].concat());
    let script = format!("exec 3<&0 </dev/null; {setup}; exec \"$@\"");
    let mut shell = Command::new("/bin/sh");
    shell.env_clear().args(["-c", &script, "sh"]);
    shell.arg(program.get_program()).args(program.get_args());
    shell.stdin(Stdio::from(socket.into()));
    shell
}

fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

/// Returns the number of sockets that share the port. Connections that wait at one that ends with
/// its process are lost.
fn listeners_at(address: &str) -> usize {
    let (_, port) = address.rsplit_once(':').unwrap();
    let local = format!(":{:04X}", port.parse::<u16>().unwrap());
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let rows = table.lines().map(|row| row.split_whitespace());
    let listening = rows.filter_map(|mut row| Some((row.nth(1)?, row.nth(1)?)));
    listening
        .filter(|(at, state)| at.ends_with(&local) && *state == "0A")
        .count()
}

#[test]
fn sockets_that_are_passed_on_are_served_and_stay_open() {
    let names = "export LISTEN_FDS=1 LISTEN_PID=$$ LISTEN_FDNAMES=web";
    for setup in [FOR_US, names, "export SERVER_STARTER_PORT=5000=3"] {
        for flags in [["--loops", "1"], ["--loops", "4"]] {
            let (listener, address) = listener();
            let ours = listener.try_clone().unwrap();
            let mut server = Running::start(&mut passed(listener, setup, &flags));
            assert_eq!(server.address, address, "{setup}");
            assert_eq!(listeners_at(&address), 1, "{flags:?}");
            assert!(server.get("/hello").ends_with("Hello, world!\n"));
            server.signal(Signal::TERM);
            assert_eq!(server.wait().code(), Some(0));
            // No connection is refused: one that comes now waits for the next server.
            let _waiting = TcpStream::connect(&address).unwrap();
            drop(ours);
        }
    }
}

#[test]
fn a_unix_socket_that_is_passed_on_is_served_and_its_file_stays() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("passed=on.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let setup = format!("export SERVER_STARTER_PORT='{}=3'", path.display());
    let mut server = Running::start(&mut passed(listener, &setup, &[]));
    let mut client = UnixStream::connect(&path).unwrap();
    std::io::Write::write_all(
        &mut client,
        b"GET /health HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n",
    )
    .unwrap();
    assert!(read_to_end(client).ends_with("ok\n"));
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
    assert!(path.exists());
}

#[test]
fn what_is_for_another_process_is_left_to_it() {
    let (listener, address) = listener();
    let setup = "export LISTEN_FDS=1 LISTEN_PID=1";
    let server = Running::start(&mut passed(listener, setup, &["-l", "127.0.0.1:0"]));
    assert_ne!(server.address, address);
    assert!(server.get("/health").ends_with("ok\n"));
}

/// Returns the message with which the program rejects its start.
fn refused(socket: impl Into<OwnedFd>, setup: &str, flags: &[&str]) -> String {
    let output = passed(socket, setup, flags).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{setup}: {message}");
    assert!(!message.contains("listening"), "{message}");
    message
}

#[test]
fn variables_that_make_no_sense_are_refused() {
    let cases = [
        ("export LISTEN_FDS=x LISTEN_PID=$$", "LISTEN_FDS=x"),
        ("export LISTEN_FDS=0 LISTEN_PID=$$", "LISTEN_FDS=0"),
        ("export LISTEN_FDS=1; unset LISTEN_PID", "LISTEN_PID is not"),
        ("export LISTEN_FDS=1 LISTEN_PID=me", "LISTEN_PID=me"),
        (
            "export LISTEN_FDS=1 LISTEN_PID=$$ LISTEN_FDNAMES=a:b",
            "2 names for 1",
        ),
        ("export LISTEN_FDS=2 LISTEN_PID=$$", "descriptor 4"),
        ("export SERVER_STARTER_PORT=", "names no socket"),
        (
            "export SERVER_STARTER_PORT=5000",
            "SERVER_STARTER_PORT=5000",
        ),
        ("export SERVER_STARTER_PORT=5000=7", "not open"),
        ("export SERVER_STARTER_PORT='5000=3;5001=3'", "twice"),
        (
            "export SERVER_STARTER_PORT=5000=3 LISTEN_FDS=1 LISTEN_PID=$$",
            "twice",
        ),
    ];
    for (setup, said) in cases {
        let message = refused(listener().0, setup, &[]);
        assert!(message.contains(said), "{setup}: {message}");
    }
}

#[test]
fn what_does_not_listen_is_refused() {
    let (listening, address) = listener();
    let connected = TcpStream::connect(address).unwrap();
    let bound = UdpSocket::bind("127.0.0.1:0").unwrap();
    let file = File::open("/dev/null").unwrap();
    let cases: [(OwnedFd, &str); 3] = [
        (connected.into(), "stream socket that listens"),
        (bound.into(), "stream socket that listens"),
        (file.into(), "not a socket"),
    ];
    for (descriptor, said) in cases {
        let message = refused(descriptor, FOR_US, &[]);
        assert!(message.contains(said), "{message}");
        assert!(message.contains("descriptor 3"), "{message}");
    }
    drop(listening);
}

#[test]
fn addresses_beside_sockets_that_are_passed_on_are_refused() {
    for flags in [["-l", "127.0.0.1:0"], ["-p", "0"], ["-o", "::1"]] {
        let message = refused(listener().0, FOR_US, &flags);
        assert!(message.contains("leave these out"), "{message}");
    }
}
