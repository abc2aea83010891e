//! `greenroom bench` with wrong input, and in front of servers that fail.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "bench/mod.rs"]
mod support;

#[allow(dead_code, reason = "these tests use a part of it")]
mod program;

use std::process::Command;

use program::{Running, command};
use rustix::process::Signal;
use support::{Finished, Fixture, Measuring, Reply, address, bench, quiet, response};

/// Returns the message with which flags are rejected before a URL that has no server; nothing was
/// sent.
fn error_of(flags: &[&str]) -> String {
    let server = Fixture::hello();
    let run = quiet(flags, &server.url("/")).expect_status(2);
    assert!(server.requests().is_empty(), "{flags:?}");
    run.stderr
}

#[test]
fn wrong_values_are_refused_with_flag_value_and_what_is_allowed() {
    for (flag, value, allowed) in [
        ("-n", "0", "from 1 to"),
        ("-n", "many", "from 1 to"),
        ("-n", "99999999999999999999", "from 1 to 2^64"),
        ("-c", "0", "from 1 to"),
        ("-c", "99999999999", "from 1 to 2^32"),
        ("-t", "0", "longer than 0"),
        ("-t", "soon", "250ms, 10s or 1m 30s"),
        ("-s", "0s", "longer than 0"),
        ("--rate", "nan", "from 0 to 10000000"),
        ("--rate", "1e300", "from 0 to 10000000"),
        ("--ramp", "5000", "FROM..TO"),
        ("--ramp", "0..fast", "from 0 to 10000000"),
        ("--stage", "100", "RATE@TIME"),
        ("--pipeline", "0", "1..=1024"),
        ("--threads", "257", "1..=256"),
        ("-b", "0", "from 1B to 1GiB"),
        ("-b", "big", "64KiB"),
        ("-B", "300.0.0.1", "IP address"),
        ("-m", "GET IT", "GET or DELETE"),
        ("-H", "Novalue", "'Name: value'"),
        ("-A", "nobody", "USER:PASSWORD"),
        ("-C", "a=b\r\nX: y", "control characters"),
        ("-T", "a\nb", "control characters"),
        ("-X", "proxy:0", "HOST:PORT"),
        ("-v", "5", "0..=4"),
        ("--interval", "1ms", "100ms to 1h"),
        ("--fail-if", "p99", "p99>50ms"),
        ("--fail-if", "speed>1", "p50, p99, p99.9"),
        ("--fail-if", "p99>50", "a time such as 50ms"),
        ("--fail-if", "errors>few", "0.1%"),
        ("--also", "rate=1", "rate=100 http://host/path"),
        ("--also", "method= http://host/", "GET or DELETE"),
        ("--also", "rate=1 ramp=0..2 http://host/", "not both"),
        ("--server-pid", "0", "from 1 to"),
    ] {
        let message = error_of(&[flag, value]);
        let shown = value.lines().next().unwrap().trim_end();
        for text in ["error: invalid value", "'--", shown, allowed] {
            assert!(message.contains(text), "{flag} {value}: {message}");
        }
    }
}

#[test]
fn flags_that_contradict_each_other_are_refused() {
    let file = std::env::current_exe().unwrap();
    let file = file.to_str().unwrap();
    for (flags, text) in [
        (&["--rate", "10"][..], "--duration"),
        (&["--ramp", "0..10"], "--duration"),
        (&["--rate", "10", "-t", "1", "-n", "5"], "--requests"),
        (&["--rate", "10", "-t", "1", "--ramp", "0..5"], "--ramp"),
        (&["--stage", "10@1s", "-t", "1"], "--duration"),
        (&["--rate", "0", "-t", "1"], "--rate"),
        (&["--pipeline", "4"], "-k"),
        (
            &["--rate", "9", "-t", "1", "-k", "--pipeline", "4"],
            "closed loop",
        ),
        (&["--threads", "3", "-c", "2"], "--threads 3"),
        (&["-i", "-m", "GET"], "--method"),
        (&["-p", file, "-u", file], "--put-file"),
        (&["-P", "user:pass"], "--proxy"),
        (&["--also", "http://127.0.0.1:1/"], "--duration"),
        (&["-c", "4000000000"], "ulimit -n"),
        (
            &["-t", "1", "--also", "connections=4000000000 http://h/"],
            "ulimit -n",
        ),
        (&["-B", "192.0.2.1"], "192.0.2.1"),
        (&["--server-pid", "4000000000"], "4000000000"),
    ] {
        let message = error_of(flags);
        assert!(message.starts_with("error: "), "{flags:?}: {message}");
        assert!(message.contains(text), "{flags:?}: {message}");
    }
}

#[test]
fn flags_of_ab_that_make_no_sense_here_are_refused_by_name() {
    for flag in ["-w", "-x", "-y", "-z", "-Z", "-f"] {
        let message = error_of(&[flag, "value"]);
        let expected = format!("unexpected argument '{flag}'");
        assert!(message.contains(&expected), "{message}");
    }
}

#[test]
fn what_is_no_url_is_refused() {
    for (url, text) in [
        ("localhost:5000", "http://, https://, ws:// or wss://"),
        ("ftp://host/", "http://, https://, ws:// or wss://"),
        ("", "http://, https://, ws:// or wss://"),
        ("http://", "the host is missing"),
        ("http://host:65536/", "from 1 to 65535"),
        ("http://host/a b", "invalid uri character"),
        ("http://user:password@host/", "no place in a URL"),
        ("weight=0 http://host/", "from 1 to 1000"),
        ("http://a..b/", "cannot resolve \"a..b\""),
    ] {
        let run = quiet(&[], url).expect_status(2);
        assert!(run.stderr.contains(text), "{url}: {}", run.stderr);
    }
    let run = bench(&["-q"]).expect_status(2);
    assert!(run.stderr.contains("<URL>..."), "{}", run.stderr);
    let mixed = bench(&["http://127.0.0.1:1/", "ws://127.0.0.1:1/"]).expect_status(2);
    assert!(mixed.stderr.contains("--also"), "{}", mixed.stderr);
}

#[test]
fn files_that_cannot_be_used_are_told_before_anything_is_sent() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("no/file");
    let missing = missing.to_str().unwrap();
    let here = directory.path().to_str().unwrap();
    for flag in [
        "-p", "-u", "--json", "--csv", "-e", "-g", "--hdr", "--plot", "--html",
    ] {
        for file in [missing, here] {
            let message = error_of(&[flag, file]);
            assert!(message.contains(file), "{flag}: {message}");
        }
    }
    assert!(error_of(&["--json", here]).contains("it is a directory"));
}

#[test]
fn what_is_wrong_in_a_file_of_urls_is_told_with_its_line() {
    let server = Fixture::hello();
    let file = tempfile::NamedTempFile::new().unwrap();
    let name = file.path().to_str().unwrap();
    for (line, told) in [
        ("nowhere", "http://, https://, ws:// or wss://"),
        ("http://other.example/", "the same scheme, host and port"),
        ("weight=0 http://host/", "from 1 to 1000"),
    ] {
        std::fs::write(&file, format!("{}\n# likes\n{line}\n", server.url("/"))).unwrap();
        let run = bench(&["-q", "--url-file", name]).expect_status(2);
        for text in [name, "line 3: ", line, told] {
            assert!(run.stderr.contains(text), "{line}: {}", run.stderr);
        }
    }
    std::fs::write(&file, "\n").unwrap();
    let empty = bench(&["--url-file", name]).expect_status(2);
    assert!(empty.stderr.contains("it has no URL"), "{}", empty.stderr);
    let missing = bench(&["--url-file", "no/file"]).expect_status(2);
    assert!(missing.stderr.contains("cannot read no/file"));
    let both = bench(&["--url-file", name, "http://127.0.0.1:1/"]).expect_status(2);
    assert!(both.stderr.contains("cannot be used with"));
    assert!(server.requests().is_empty());
}

#[test]
fn full_disk_is_told_by_the_name_of_the_file() {
    let server = Fixture::hello();
    for flag in ["--json", "--csv", "-e", "-g", "--hdr", "--plot", "--html"] {
        let run = quiet(&["-n", "3", flag, "/dev/full"], &server.url("/")).expect_status(1);
        assert!(
            run.stderr.contains("cannot write /dev/full"),
            "{flag}: {}",
            run.stderr
        );
        assert_eq!(run.count("Complete requests:"), 3);
    }
}

#[test]
fn nobody_there_is_a_failure_of_its_own_kind() {
    let url = format!("http://{}/", address());
    let run = quiet(&["-n", "5", "-c", "2"], &url).expect_status(1);
    run.assert_failed(5, &["refused"]);
    run.assert_prints(&[
        "(Connect: 5, Receive: 0, Length: 0, Exceptions: 0)",
        "is the server running?",
    ]);
    assert!(!run.stdout.contains("Requests per second"));
}

/// Sends four requests to a server that fails always, and asserts that all failed in one of these
/// ways.
fn assert_fails(reply: Reply, kinds: &[&str]) -> Finished {
    let server = Fixture::start(move |_| reply.clone());
    let flags = ["-k", "-n", "4", "-c", "2", "-s", "500ms"];
    let run = quiet(&flags, &server.url("/")).expect_status(1);
    run.assert_failed(4, kinds);
    run.assert_prints(&[
        "Complete requests:      0\n",
        "first: ",
        "No request got a response at all.",
    ]);
    assert!(!run.stdout.contains("NaN") && !run.stdout.contains("inf"));
    run
}

#[test]
fn failing_servers_are_told_apart() {
    let text = |text: &str| text.as_bytes().to_vec();
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n";
    let closed = ["closed-early", "reset"];
    assert_fails(Reply::Hang(Vec::new()), &["timeout"]);
    assert_fails(Reply::Close(Vec::new()), &closed);
    assert_fails(Reply::Close(text(&format!("{head}half"))), &closed);
    assert_fails(Reply::Hang(text(&format!("{head}half"))), &["timeout"]);
    let run = assert_fails(Reply::Hang(text("SSH-2.0-OpenSSH_9.6\r\n")), &["malformed"]);
    run.assert_prints(&["SSH-2.0-OpenSSH"]);
    let length = "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n";
    assert_fails(Reply::Hang(text(length)), &["malformed"]);
    let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(1 << 20));
    assert_fails(Reply::Hang(text(&endless)), &["malformed"]);
}

#[test]
fn responses_that_say_503_are_responses() {
    let server = Fixture::start(|_| Reply::Keep(response("503 Busy", "busy")));
    let run = quiet(&["-k", "-n", "10"], &server.url("/")).expect_status(0);
    assert_eq!(run.count("Complete requests:"), 10);
    assert_eq!(run.count("Failed requests:"), 0);
    assert_eq!(run.count("Non-2xx responses:"), 10);
    run.assert_prints(&["Responses by status\n  503            10\n"]);
}

#[test]
fn server_that_dies_leaves_a_report_of_both() {
    for flags in [&["-k", "-t", "1"][..], &["-k", "--rate", "200", "-t", "1"]] {
        let listen = address().to_string();
        let server = Running::start(&mut command(&["serve", "--listen", &listen]));
        let url = format!("http://{listen}/hello");
        let arguments = [flags, &["-s", "1", "--interval", "100ms", &url]].concat();
        let mut run = Measuring::start(&arguments);
        run.wait_for_responses();
        server.signal(Signal::KILL);
        let run = run.finish();
        // On a busy machine the generator may miss the rate.
        let is_missed = run.status == Some(3) && run.stdout.contains("RATE WAS MISSED");
        assert!(is_missed || run.status == Some(0), "{run:?}");
        assert!(run.count("Complete requests:") > 0);
        let failed = run.count("Failed requests:");
        assert!(failed > 0);
        run.assert_failed(failed, &["refused", "reset", "closed-early", "never-sent"]);
        run.assert_prints(&["  Server        ended during the run\n"]);
    }
}

#[test]
fn few_descriptors_bound_the_connections() {
    let server = Fixture::hello();
    let limited = |limit: u32, flags: &str| {
        let program = env!("CARGO_BIN_EXE_greenroom");
        let script = format!(
            "ulimit -n {limit} && exec {program} bench -q {flags} {}",
            server.url("/")
        );
        Measuring::spawn(Command::new("sh").args(["-c", &script])).finish()
    };
    let refused = limited(100, "-n 200 -c 90").expect_status(2);
    for text in ["-c 90", "at most 36", "ulimit -n"] {
        assert!(refused.stderr.contains(text), "{}", refused.stderr);
    }
    let also = format!("--also connections=32\\ {}", server.url("/"));
    for (limit, flags) in [
        (64, "--rate 10 -t 500ms"),
        (100, &format!("--rate 10 -t 500ms {also}")),
        (95, "--rate 10 -t 500ms --threads 8"),
    ] {
        let open = limited(limit, flags).expect_status(2);
        assert!(
            open.stderr.contains("ulimit -n"),
            "{flags}: {}",
            open.stderr
        );
    }
    let run = limited(100, "-n 200 -c 36").expect_status(0);
    assert_eq!(run.count("Complete requests:"), 200);
}
