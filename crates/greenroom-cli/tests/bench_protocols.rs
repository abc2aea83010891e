//! `greenroom bench` over every protocol that it supports.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "bench/mod.rs"]
mod support;

#[allow(dead_code, reason = "these tests use a part of it")]
mod program;

use std::collections::BTreeSet;
use std::net::TcpListener;

use program::{Running, command};
use support::tls::TlsFront;
use support::{Finished, Fixture, bench, quiet};

/// Asserts that this number of requests got a response, and none failed.
fn assert_served(run: Finished, count: u64) -> Finished {
    let run = run.expect_status(0);
    assert_eq!(run.count("Complete requests:"), count, "{}", run.stdout);
    assert_eq!(run.count("Failed requests:"), 0, "{}", run.stdout);
    assert!(!run.stdout.contains("Non-2xx"), "{}", run.stdout);
    run
}

#[test]
fn urls_of_a_file_take_turns_over_http_2() {
    let server = Running::serve(&[]);
    let origin = format!("http://{}", server.address);
    let file = tempfile::NamedTempFile::new().unwrap();
    let lines = format!("{origin}/hello\nweight=3 {origin}/missing\n");
    std::fs::write(&file, lines).unwrap();
    let name = file.path().to_str().unwrap();
    let flags = ["-q", "--http2", "-k", "-n", "40", "--url-file", name];
    let run = bench(&flags).expect_status(0);
    assert_eq!(run.count("Complete requests:"), 40);
    assert_eq!(run.count("Non-2xx responses:"), 30);
}

#[test]
fn certificate_is_checked_unless_it_need_not_be() {
    let server = Running::serve(&[]);
    let front = TlsFront::of(&server.address, &["http/1.1"]);
    let url = format!("https://localhost:{}/hello", front.port);
    let run = quiet(&["-n", "3"], &url).expect_status(1);
    run.assert_failed(3, &["tls"]);
    run.assert_prints(&["--insecure accepts any certificate"]);
    let run = assert_served(quiet(&["-n", "6", "-c", "2", "--insecure"], &url), 6);
    run.assert_prints(&[
        "SSL/TLS Protocol:       TLSv1.",
        "TLS Server Name:        localhost\n",
    ]);
    let certificate = front.certificate();
    let certificate = certificate.to_str().unwrap();
    assert_served(quiet(&["-k", "-n", "6", "--ca", certificate], &url), 6);
    // It was made for the name, not for the address.
    let url = format!("https://127.0.0.1:{}/hello", front.port);
    let run = quiet(&["-n", "2", "--ca", certificate], &url).expect_status(1);
    run.assert_failed(2, &["tls"]);
}

#[test]
fn files_for_tls_are_checked_before_anything_is_sent() {
    let server = Running::serve(&[]);
    let front = TlsFront::of(&server.address, &[]);
    let url = format!("https://localhost:{}/hello", front.port);
    let certificate = front.certificate();
    let certificate = certificate.to_str().unwrap();
    for (flags, file, text) in [
        (&["--ca"][..], "/nowhere", "No such file"),
        (&["--ca"], "/etc/passwd", "no certificate"),
        (&["--insecure", "-E"], "/nowhere", "No such file"),
        (&["--insecure", "-E"], certificate, "no private key"),
    ] {
        let run = quiet(&[flags, &[file]].concat(), &url).expect_status(2);
        for text in [file, text] {
            assert!(
                run.stderr.contains(text),
                "{flags:?} {file}: {}",
                run.stderr
            );
        }
    }
}

#[test]
fn plain_server_fails_the_handshake_of_tls() {
    let server = Running::serve(&[]);
    let url = format!("https://{}/", server.address);
    let run = quiet(&["-n", "2", "-s", "2", "--insecure"], &url).expect_status(1);
    run.assert_failed(2, &["tls", "closed-early", "reset"]);
    // The kernel makes the connection, and no program ever reads from it.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", silent.local_addr().unwrap());
    let run = quiet(&["-n", "2", "-c", "2", "-s", "500ms", "--insecure"], &url).expect_status(1);
    run.assert_failed(2, &["connect-timeout", "timeout"]);
}

#[test]
fn http2_is_spoken_with_prior_knowledge() {
    let server = Running::serve(&[]);
    let url = format!("http://{}/hello", server.address);
    for flags in [
        &["-n", "20", "-c", "4"][..],
        &["-n", "20", "-k"],
        &["-n", "20", "-k", "-c", "2", "--pipeline", "5"],
        &["-k", "--rate", "40", "-t", "500ms"],
    ] {
        let run = quiet(&[&["--http2", "-v", "2"], flags].concat(), &url);
        let run = assert_served(run, 20);
        run.assert_prints(&["HTTP/2", "HTML transferred:       280 bytes\n"]);
    }
}

#[test]
fn http2_is_negotiated_over_tls() {
    let server = Running::serve(&[]);
    let front = TlsFront::of(&server.address, &["h2", "http/1.1"]);
    let url = format!("https://localhost:{}/hello", front.port);
    assert_served(
        quiet(&["-k", "-n", "9", "-c", "3", "--http2", "--insecure"], &url),
        9,
    );
    assert_served(quiet(&["-k", "-n", "9", "-c", "3", "--insecure"], &url), 9);
    let old = TlsFront::of(&server.address, &["http/1.1"]);
    let url = format!("https://localhost:{}/hello", old.port);
    let run = quiet(&["-n", "2", "--http2", "--insecure"], &url).expect_status(1);
    run.assert_failed(2, &["handshake", "tls"]);
}

#[test]
fn http2_in_front_of_an_old_server_fails() {
    let silent = Fixture::silent();
    let run = quiet(
        &["-n", "2", "-c", "2", "-s", "500ms", "--http2"],
        &silent.url("/"),
    );
    run.expect_status(1)
        .assert_failed(2, &["timeout", "connect-timeout"]);
    let old = Fixture::hello();
    let run = quiet(&["-n", "2", "-s", "2", "--http2"], &old.url("/")).expect_status(1);
    run.assert_failed(2, &["handshake"]);
}

#[test]
fn websocket_messages_make_round_trips() {
    let server = Running::serve(&[]);
    let url = format!("ws://{}/ws/echo", server.address);
    let directory = tempfile::tempdir().unwrap();
    let message = directory.path().join("message");
    std::fs::write(&message, "twelve bytes").unwrap();
    for flags in [
        &["-n", "20", "-c", "4"][..],
        &["-n", "20", "-k", "-c", "2"],
        &["-k", "--rate", "40", "-t", "500ms"],
    ] {
        let flags = [&["-p", message.to_str().unwrap()], flags].concat();
        let run = assert_served(quiet(&flags, &url), 20);
        run.assert_prints(&[
            "Document Length:        12 bytes",
            "HTML transferred:       240 bytes",
        ]);
    }
    let front = TlsFront::of(&server.address, &[]);
    let url = format!("wss://localhost:{}/ws/echo", front.port);
    assert_served(quiet(&["-k", "-n", "5", "--insecure"], &url), 5);
}

#[test]
fn websocket_needs_a_server_that_opens_one() {
    let server = Running::serve(&[]);
    let url = format!("ws://{}/hello", server.address);
    let run = quiet(&["-k", "-n", "3"], &url).expect_status(1);
    run.assert_failed(3, &["handshake"]);
    let silent = Fixture::silent();
    let url = format!("ws://{}/", silent.address);
    let run = quiet(&["-n", "2", "-c", "2", "-s", "500ms"], &url).expect_status(1);
    run.assert_failed(2, &["connect-timeout", "timeout"]);
    for flags in [
        &["--http2"][..],
        &["-m", "POST"],
        &["-i"],
        &["-k", "--pipeline", "2"],
    ] {
        let run = quiet(flags, &url).expect_status(2);
        assert!(
            run.stderr.contains("WebSocket"),
            "{flags:?}: {}",
            run.stderr
        );
    }
}

#[test]
fn unix_socket_carries_every_protocol() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("server.sock");
    let path = path.to_str().unwrap();
    let listen = format!("unix:{path}");
    let _server = Running::start(&mut command(&["serve", "--listen", &listen]));
    for (flags, url) in [
        (&["-n", "8", "-c", "2"][..], "http://anywhere.invalid/hello"),
        (&["-n", "8", "-k"], "http://anywhere.invalid/hello"),
        (
            &["-n", "8", "-k", "--http2"],
            "http://anywhere.invalid/hello",
        ),
        (&["-n", "8", "-k"], "ws://anywhere.invalid/ws/echo"),
        (
            &["-k", "--rate", "16", "-t", "500ms"],
            "http://anywhere.invalid/hello",
        ),
    ] {
        let run = quiet(&[&["--unix-socket", path], flags].concat(), url);
        let run = assert_served(run, 8);
        run.assert_prints(&["Server Hostname:        anywhere.invalid\n"]);
    }
    let run = quiet(
        &["-n", "2", "--unix-socket", "/nowhere.sock"],
        "http://anywhere.invalid/",
    );
    run.expect_status(1).assert_failed(2, &["refused"]);
}

#[test]
fn addresses_and_names_of_this_machine_are_reached() {
    let mut both = command(&["serve", "--listen", "[::1]:0"]);
    let server = Running::start(&mut both);
    let run = quiet(&["-n", "4"], &format!("http://{}/hello", server.address));
    assert_served(run, 4).assert_prints(&["Server Hostname:        ::1\n"]);
    let server = Fixture::hello();
    let url = format!("http://localhost:{}", server.address.port());
    let run = assert_served(quiet(&["-n", "4"], &url), 4);
    run.assert_prints(&[
        "Server Hostname:        localhost\n",
        "Document Path:          /\n",
    ]);
    assert_eq!(server.requests()[0].path(), "/");
}

#[test]
fn connections_come_from_the_source_addresses_in_turn() {
    let server = Fixture::hello();
    let flags = ["-n", "12", "-c", "3", "-B", "127.0.0.2,127.0.0.3"];
    assert_served(quiet(&flags, &server.url("/")), 12);
    let peers: BTreeSet<_> = server.requests().iter().map(|one| one.peer.ip()).collect();
    let expected = ["127.0.0.2", "127.0.0.3"].map(|ip| ip.parse().unwrap());
    assert_eq!(peers, BTreeSet::from(expected));
}

#[test]
fn pipelined_requests_share_a_connection() {
    let server = Fixture::hello();
    assert_served(
        quiet(
            &["-k", "-n", "40", "-c", "2", "--pipeline", "5"],
            &server.url("/"),
        ),
        40,
    );
    assert_eq!((server.requests().len(), server.connections()), (40, 2));
}
