//! Perl applications and sites, and what may change of a file from one version to
//! the next.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use crate::program::read_to_end;
use crate::versions::{Versions, lives, until};

#[test]
fn perl_workers_end_after_their_requests() {
    let directory = tempfile::tempdir().unwrap();
    let app = directory.path().join("app.psgi");
    let slow = "sub { my $env = shift; if ($env->{PATH_INFO} eq '/slow') {\
        open my $begun, '>', 'begun'; close $begun; select(undef, undef, undef, 0.01) until -e 'go' }\
        [200, [], [\"one $$\"]] }";
    fs::write(&app, slow).unwrap();
    let mut versions = Versions::serve_in(directory, &["app.psgi", "--workers", "1"]);
    let text = versions.get("/");
    let worker: u32 = text.rsplit(' ').next().unwrap().parse().unwrap();
    let slow = versions.first.request("/slow");
    let path = |name: &str| app.with_file_name(name);
    until("it does not begin", || path("begun").exists());
    fs::write(&app, "sub { [200, [], ['two']] }").unwrap();
    versions.upgrade();
    assert!(versions.get("/").ends_with("two"));
    assert!(lives(worker));
    fs::write(path("go"), "").unwrap();
    assert!(read_to_end(slow).ends_with(&format!("one {worker}")));
    assert_eq!(versions.first.wait().code(), Some(0));
    until("the old worker stays", || !lives(worker));
}

fn file(listen: &[&str], loops: u32, text: &str) -> String {
    format!(
        "[server]\nlisten = {listen:?}\nloops = {loops}\n\
         [[site]]\n[[site.route]]\npath = \"/\"\nrespond = \"{text}\"\n"
    )
}

#[test]
fn loops_and_addresses_may_change() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("greenroom.toml");
    let socket = directory.path().join("b.sock");
    let of_socket = format!("unix:{}", socket.display());
    fs::write(&path, file(&["127.0.0.1:0"], 4, "4")).unwrap();
    let mut versions = Versions::start(directory, &["greenroom.toml"]);
    for loops in [1, 3, 2, 4] {
        let listen = ["127.0.0.1:0", &of_socket];
        let listen = if loops == 2 { &listen[..1] } else { &listen };
        let text = loops.to_string();
        fs::write(&path, file(listen, loops, &text)).unwrap();
        let before = versions.pid;
        versions.upgrade();
        // Each socket of the first version's is served still, whichever the system chooses.
        for _ in 0..32 {
            assert!(versions.get("/").ends_with(&text));
        }
        versions.gone(before);
        assert_eq!(socket.exists(), loops != 2);
    }
}

#[test]
fn an_address_that_is_not_named_any_more_is_given_up_when_its_clients_have_been_served() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("greenroom.toml");
    let free = || {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    };
    let (kept, given_up) = (free(), free());
    fs::write(&path, file(&[&kept, &given_up], 1, "one")).unwrap();
    let mut versions = Versions::start(directory, &["greenroom.toml"]);
    let mut client = TcpStream::connect(&given_up).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    until("it is not accepted", || accepted(&given_up) == 1);
    fs::write(&path, file(&[&kept], 1, "two")).unwrap();
    let (before, mut text) = (versions.pid, String::new());
    versions.upgrade();
    versions
        .first
        .wait_for_log("the next version has no use for it");
    client.write_all(b"Host: here\r\n\r\n").unwrap();
    client.read_to_string(&mut text).unwrap();
    assert!(text.ends_with("one"), "{text}");
    versions.gone(before);
    assert!(TcpStream::connect(&given_up).is_err());
    assert!(versions.get("/").ends_with("two"));
}

/// Returns the number of connections at an address that were accepted.
fn accepted(address: &str) -> usize {
    let port: u16 = address.rsplit(':').next().unwrap().parse().unwrap();
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let at = format!(":{port:04X}");
    let rows = table
        .lines()
        .map(|row| row.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row.len() > 9 && row[1].ends_with(&at) && row[3] == "01" && row[9] != "0")
        .count()
}
