//! Certificates that come by themselves: `greenroom serve --domain`, with Pebble as the authority.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod outside;
#[path = "acme/pebble.rs"]
mod pebble;
#[path = "../../greenroom-acme/tests/with_pebble/ports.rs"]
mod ports;
#[allow(dead_code, reason = "these tests use a part of it")]
mod program;
#[path = "acme/storage.rs"]
mod storage;
#[path = "acme/upgrades.rs"]
mod upgrades;
#[allow(dead_code, reason = "these tests use a part of it")]
#[path = "upgrade/versions.rs"]
mod versions;

use std::fs;
use std::thread;

use outside::tools;
use pebble::{Authority, NAME};
use program::{Running, output};
use rustix::process::Signal;

#[test]
fn a_name_is_all_that_a_certificate_needs() {
    let authority = Authority::start();
    authority.write_issued_root();
    let server = authority.serve();
    server.wait_for_log("a certificate is obtained");
    assert_eq!(authority.hello(), "Hello, world!\n");
    drop(server);
    // The next one has it from the directory.
    let _server = authority.serve();
    assert_eq!(authority.hello(), "Hello, world!\n");
}

#[test]
fn hosts_of_sites_get_certificates_by_themselves() {
    let authority = Authority::start();
    authority.write_issued_root();
    let file = authority.write_site(&[NAME, "localhost", "*.example.org", "192.0.2.1"]);
    let server = Running::start(&mut program::command(&["serve", file.to_str().unwrap()]));
    server.wait_for_log("a certificate is obtained");
    assert_eq!(authority.hello(), "of a site\n");
    // What a new file adds is obtained, and who is there already loses no request.
    let file = authority.write_site(&["other.example.net", NAME]);
    thread::scope(|scope| {
        let asking = scope.spawn(|| {
            for _ in 0..20 {
                assert_eq!(authority.hello(), "of a site\n");
            }
        });
        server.signal(Signal::HUP);
        let line = server.wait_for_log("a certificate is obtained");
        assert!(line.contains("other.example.net"), "{line}");
        asking.join().unwrap();
    });
    let asked = tools::run(&mut authority.client("other.example.net"));
    assert_eq!(asked.expect_success("curl").stdout, "of a site\n");
    // What a new file has no more gets no certificate, and a wrong file changes nothing.
    authority.write_site(&["other.example.net"]);
    server.signal(Signal::HUP);
    server.wait_for_log("in force");
    let asked = authority.client(NAME).output().unwrap();
    assert_eq!(asked.status.code(), Some(35), "{asked:?}");
    fs::write(&file, "[[sites]]").unwrap();
    server.signal(Signal::HUP);
    server.wait_for_log("stay as they were");
    let asked = tools::run(&mut authority.client("other.example.net"));
    assert_eq!(asked.expect_success("curl").stdout, "of a site\n");
}

#[test]
fn hosts_that_are_no_public_names_get_no_certificates() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("greenroom.toml");
    let text = "[server]\nlisten = \"127.0.0.1:0\"\nautomatic_certificates = true\n\
        acme_storage = \"storage\"\n[[site]]\nhosts = [\"localhost\", \"printer.local\"]\n\
        [[site.route]]\npath = \"/\"\nrespond = \"\"\n";
    fs::write(&file, text).unwrap();
    let ended = output(&["serve", file.to_str().unwrap()]);
    let message = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{message}");
    assert!(
        message.contains("automatic_certificates: no site has"),
        "{message}"
    );
}

#[test]
fn a_name_that_no_certificate_is_for_is_told_at_once() {
    let storage = tempfile::tempdir().unwrap();
    let storage = storage.path().to_str().unwrap();
    let flags = ["--domain", "*.example.org", "--acme-storage", storage];
    let ended = output(&[&["serve", "--listen", "127.0.0.1:0"], &flags[..]].concat());
    let message = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{message}");
    assert!(message.contains("*.example.org"), "{message}");
}
