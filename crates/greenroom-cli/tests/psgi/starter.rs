//! Under programs that hold the listening sockets: Perl's `start_server`, and systemd.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::http;
use crate::plackup::plackup;
use crate::program::{Running, command};
use crate::site::{Folder, until};

/// The number of clients that send requests without a pause, each time on a connection of its own.
const CLIENTS: usize = 8;

fn version(number: u32) -> String {
    format!("sub {{ [200, [], ['version {number}']] }};")
}

/// Returns `start_server`, with a free port, and the program that it starts and restarts.
fn start_server(folder: &Folder, program: &Command) -> Command {
    let mut starter = Command::new("start_server");
    starter.args(["--interval=1", "--port=127.0.0.1:0", "--"]);
    starter.arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        if let Some(value) = value {
            starter.env(name, value);
        }
    }
    folder.confine(&mut starter);
    starter
}

/// Counts the processes of the folder that hold the listener open.
fn holders_of_listener(folder: &Folder, port: &str) -> usize {
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let port: u16 = port.parse().unwrap();
    let (local, listening) = (format!(":{port:04X}"), "0A");
    let row = table
        .lines()
        .map(|row| row.split_whitespace().collect::<Vec<_>>());
    let inode = row
        .into_iter()
        .find(|row| row.len() > 9 && row[1].ends_with(&local) && row[3] == listening);
    let socket = format!("socket:[{}]", inode.expect("somebody listens")[9]);
    let holds = |pid: &&u32| {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd"));
        let mut links = descriptors
            .into_iter()
            .flatten()
            .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        links.any(|link| link.to_str() == Some(&*socket))
    };
    folder.processes().iter().filter(holds).count()
}

/// Ends the clients also if a test fails: nothing else does.
struct EndClients<'a>(&'a AtomicBool);

impl Drop for EndClients<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Restarts by SIGHUP while clients send requests; every one of them must get its response, at last
/// from the new code.
fn assert_restarts(folder: &Folder, program: &Command) {
    let mut server = Running::start(&mut start_server(folder, program));
    let address = server.address.clone();
    let (_, port) = address.rsplit_once(':').unwrap();
    assert_eq!(
        holders_of_listener(folder, port),
        2,
        "start_server and the program"
    );
    let done = AtomicBool::new(false);
    let responses = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| {
                    let mut versions = Vec::new();
                    while !done.load(Ordering::Relaxed) {
                        let response = http::get(&address, "/");
                        assert_eq!(response.status, 200);
                        versions.push(response.text());
                    }
                    versions
                })
            })
            .collect();
        let end = EndClients(&done);
        for number in [2, 3] {
            folder.write("app/app.psgi", &version(number));
            server.signal(Signal::HUP);
            server.wait_for_log("old worker");
            until("the old code serves", || {
                http::get(&address, "/").text() == format!("version {number}")
            });
        }
        drop(end);
        let responses = clients
            .into_iter()
            .flat_map(|client| client.join().unwrap());
        responses.collect::<Vec<_>>()
    });
    for number in 1..=3 {
        assert!(responses.contains(&format!("version {number}")));
    }
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
    folder.assert_left_alone();
}

#[test]
fn start_server_restarts_the_program_and_no_connection_is_lost() {
    let folder = Folder::with(&version(1));
    let mut serve = command(&["serve", "--workers", "2"]);
    serve.arg(folder.path("app/app.psgi"));
    assert_restarts(&folder, &serve);
}

#[test]
fn start_server_restarts_plackup_and_no_connection_is_lost() {
    let folder = Folder::with(&version(1));
    // The address that is named gives way, as with other servers.
    assert_restarts(&folder, &plackup(&folder, &["--workers", "2"]));
}

/// An application whose responses end when a file is there.
fn waiting(file: &std::path::Path) -> String {
    let file = file.display();
    format!(
        "sub {{ shift->{{PATH_INFO}} eq '/slow' or return [200, [], ['quick']];
            return sub {{
                my $writer = shift->([200, []]);
                $writer->write('begun, ');
                select undef, undef, undef, 0.01 until -e '{file}';
                $writer->write('and whole');
                $writer->close;
            }} }};"
    )
}

#[test]
fn start_server_may_tell_an_old_process_twice_to_end_and_its_responses_are_whole() {
    let folder = Folder::new();
    let released = folder.path("released");
    folder.write("app/app.psgi", &waiting(&released));
    // The old process may still accept the next request, which must not wait for the slow one.
    let mut serve = command(&["serve", "--workers", "2"]);
    serve.arg(folder.path("app/app.psgi"));
    let mut server = Running::start(&mut start_server(&folder, &serve));
    let address = server.address.clone();
    let request = b"GET /slow HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
    let mut slow = http::send(&address, request);
    let mut begun = Vec::new();
    while !String::from_utf8_lossy(&begun).contains("begun, ") {
        let mut byte = [0];
        slow.read_exact(&mut byte).unwrap();
        begun.push(byte[0]);
    }
    server.signal(Signal::HUP);
    server.wait_for_log("draining; SIGINT ends at once");
    assert_eq!(http::get(&address, "/").text(), "quick");
    server.signal(Signal::HUP);
    server.wait_for_log("draining already");
    fs::write(&released, "").unwrap();
    let mut rest = String::new();
    slow.read_to_string(&mut rest).unwrap();
    assert!(
        rest.contains("and whole") && rest.ends_with("0\r\n\r\n"),
        "{rest}"
    );
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
    folder.assert_left_alone();
}

/// Has systemd's tool listen, and start the program with the first connection.
fn assert_activates(folder: &Folder, program: &Command) {
    let path = folder.path("tmp/web.sock");
    let mut activate = Command::new("systemd-socket-activate");
    activate.arg("--fdname=web").arg("-l").arg(&path);
    for name in ["TMPDIR", "PERL5LIB", "GREENROOM", "PATH"] {
        activate.args(["-E", name]);
    }
    activate.arg(program.get_program()).args(program.get_args());
    let environment = program
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    activate.envs(environment);
    folder.confine(&mut activate);
    let mut server = Running::spawn(&mut activate);
    server.wait_for_log("Listening on");
    let mut client = UnixStream::connect(&path).unwrap();
    client
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let request = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
    client.write_all(request).unwrap();
    let mut response = String::new();
    client.read_to_string(&mut response).unwrap();
    assert!(response.ends_with("version 1"), "{response}");
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
    fs::remove_file(&path).expect("the file is systemd's");
    folder.assert_left_alone();
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn systemd_activates_the_program_and_plackup() {
    let tool = Command::new("systemd-socket-activate")
        .arg("--version")
        .output();
    if tool.is_err() {
        eprintln!("SKIPPED: there is no systemd-socket-activate, of the package systemd");
        return;
    }
    let folder = Folder::with(&version(1));
    let mut serve = command(&["serve"]);
    serve.arg(folder.path("app/app.psgi"));
    assert_activates(&folder, &serve);
    assert_activates(&folder, &plackup(&folder, &[]));
}
