//! `plackup -s Greenroom`.

use std::process::Command;

use rustix::process::Signal;

use crate::http;
use crate::program::Running;
use crate::site::{Folder, repository, until};

pub(crate) fn plackup(folder: &Folder, flags: &[&str]) -> Command {
    let mut plackup = Command::new("plackup");
    plackup
        .args(["-s", "Greenroom", "--listen", "127.0.0.1:0"])
        .args(flags)
        .arg(folder.path("app/app.psgi"))
        .env("PERL5LIB", repository("crates/greenroom-psgi/perl/lib"))
        .env("GREENROOM", env!("CARGO_BIN_EXE_greenroom"));
    folder.confine(&mut plackup);
    plackup
}

#[test]
fn plackup_serves_and_a_signal_ends_all_processes() {
    for signal in [Signal::TERM, Signal::INT] {
        let folder = Folder::with("my $loaded = $$; sub { [200, [], [$loaded == getppid]] };");
        let mut server = Running::start(&mut plackup(&folder, &["--workers", "2"]));
        let response = http::get(&server.address, "/");
        assert_eq!((response.status, &*response.text()), (200, "1"));
        // plackup, the program, and two workers.
        assert_eq!(folder.processes().len(), 4);
        server.signal(signal);
        assert_eq!(server.wait().code(), Some(0));
        folder.assert_left_alone();
    }
}

#[test]
fn what_is_under_way_is_finished_when_plackup_is_told_to_end() {
    let folder = Folder::with(
        "sub {
            open my $begun, '>', 'begun';
            select undef, undef, undef, 0.01 until -e 'go';
            [200, [], ['done']];
        };",
    );
    let mut server = Running::start(&mut plackup(&folder, &[]));
    let asked = http::begin(&server.address, "GET", "/", &[], b"");
    folder.await_file("begun");
    server.signal(Signal::TERM);
    server.wait_for_log("draining");
    folder.write("go", "");
    assert_eq!(http::finish(asked).text(), "done");
    assert_eq!(server.wait().code(), Some(0));
    folder.assert_left_alone();
}

#[test]
fn hangup_brings_new_workers_of_the_same_application() {
    let folder = Folder::with("sub { [200, [], [$$]] };");
    let mut server = Running::start(&mut plackup(&folder, &["--workers", "1"]));
    let before = http::get(&server.address, "/").text();
    server.signal(Signal::HUP);
    server.wait_for_log("is loaded anew");
    let after = http::get(&server.address, "/").text();
    assert_ne!(before, after);
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
    folder.assert_left_alone();
}

#[test]
fn an_upgrade_is_refused_and_it_serves_on() {
    let folder = Folder::with("sub { [200, [], [$$]] };");
    let mut server = Running::start(&mut plackup(&folder, &["--workers", "1"]));
    let before = http::get(&server.address, "/").text();
    server.signal(Signal::USR2);
    server.wait_for_log("no upgrade is begun");
    assert_eq!(http::get(&server.address, "/").text(), before);
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
    folder.assert_left_alone();
}

/// Killed, it cannot notify any process; those that it has started must notice.
#[test]
fn everything_ends_when_plackup_is_killed() {
    let folder = Folder::with("sub { [200, [], []] };");
    let mut server = Running::start(&mut plackup(&folder, &["--workers", "2"]));
    assert_eq!(http::get(&server.address, "/").status, 200);
    server.signal(Signal::KILL);
    server.wait();
    until("processes are left", || folder.processes().is_empty());
}

#[test]
fn a_taken_address_ends_plackup_too() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = Folder::with("sub { [200, [], []] };");
    let output = plackup(&folder, &["--listen", &address]).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains(&address), "{message}");
    folder.assert_left_alone();
}

#[test]
fn options_of_other_servers_are_taken_refused_or_warned_of() {
    let folder = Folder::with("sub { [200, [], []] };");
    let pid = folder.path("greenroom.pid");
    let flags = [
        "--max-workers",
        "2",
        "--spawn-interval",
        "3",
        "--pid",
        pid.to_str().unwrap(),
    ];
    let mut server = Running::spawn(&mut plackup(&folder, &flags));
    server.wait_for_log("--spawn-interval has no effect");
    server.wait_for_log("listening");
    // plackup, the program, and two workers, of which one may come later.
    until("they are not four", || folder.processes().len() == 4);
    let number = std::fs::read_to_string(&pid).unwrap();
    let number: u32 = number.trim().parse().unwrap();
    assert!(folder.processes().contains(&number));
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
    assert!(!pid.exists());
    folder.assert_left_alone();

    for (flag, value) in [
        ("--user", "nobody"),
        ("--group", "nogroup"),
        ("--ssl-ciphers", "a"),
        ("--net_server_user", "x"),
    ] {
        let output = plackup(&folder, &[flag, value]).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{message}");
        assert!(
            message.contains(&format!("{flag} is not offered").replace('_', "-")),
            "{message}"
        );
        folder.assert_left_alone();
    }
}
