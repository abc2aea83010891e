//! `greenroom bench compare`: servers that it starts, compares, and ends.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "bench/mod.rs"]
mod support;

#[allow(dead_code, reason = "these tests use a part of it")]
mod program;

use std::fs;
use std::net::{SocketAddr, TcpStream};

use rustix::process::Signal;
use serde_json::Value;
use support::{Finished, Measuring, address, bench};

/// Load so short that a whole comparison takes seconds.
const SHORT: [&str; 7] = ["-k", "-c", "2", "-t", "300ms", "--warm-up", "20ms"];

/// A server of the demo application, as `--server` takes it.
struct Contender {
    address: SocketAddr,
    argument: String,
}

impl Contender {
    fn new(name: &str, path: &str) -> Self {
        let address = address();
        let program = env!("CARGO_BIN_EXE_greenroom");
        let command = format!("{program} serve --no-access-log --listen {address}");
        Self {
            address,
            argument: format!("{name}={command} http://{address}{path}"),
        }
    }

    /// Asserts that no server listens there.
    fn assert_is_gone(&self) {
        assert!(
            TcpStream::connect(self.address).is_err(),
            "{}",
            self.address
        );
    }
}

fn arguments<'a>(flags: &[&'a str], servers: &[&'a str]) -> Vec<&'a str> {
    let servers = servers.iter().flat_map(|server| ["--server", server]);
    let flags = flags.iter().copied();
    ["compare"]
        .into_iter()
        .chain(SHORT)
        .chain(flags)
        .chain(servers)
        .collect()
}

fn compare(flags: &[&str], servers: &[&str]) -> Finished {
    bench(&arguments(flags, servers))
}

#[test]
fn two_servers_are_compared_in_rounds_and_with_themselves() {
    let (a, b) = (Contender::new("a", "/hello"), Contender::new("b", "/hello"));
    let directory = tempfile::tempdir().unwrap();
    let [json, svg] = ["json", "svg"].map(|name| directory.path().join(name));
    let flags = [
        "--rounds",
        "2",
        "--json",
        json.to_str().unwrap(),
        "--plot",
        svg.to_str().unwrap(),
    ];
    let run = compare(&flags, &[&a.argument, &b.argument]).expect_status(0);
    let order: Vec<_> = run
        .stderr
        .lines()
        .filter(|line| line.starts_with("round "))
        .collect();
    let expected = [
        "round 1 of 2: a",
        "round 1 of 2: b",
        "round 1 of 2: a (again)",
        "round 2 of 2: a (again)",
        "round 2 of 2: b",
        "round 2 of 2: a",
    ];
    assert_eq!(order, expected);
    run.assert_prints(&[
        "a, b: 2 of 2 rounds",
        "(the same server twice: the noise)",
        "b beside a",
    ]);
    let rates = run.piped_to("grep '^requests/s'");
    assert_eq!(rates.lines().count(), 2, "{}", run.stdout);
    for line in rates.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        let number = |index: usize| words[index].parse::<f64>().unwrap();
        // Name, two medians, the ratio, and its interval `low to high`.
        assert!(number(1) > 0.0 && number(2) > 0.0, "{line}");
        assert!((number(4)..=number(6)).contains(&number(3)), "{line}");
        assert!(line.ends_with("too few rounds"), "{line}");
    }
    let summary: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let series = summary["series"].as_array().unwrap();
    let of = |key: &str| {
        series
            .iter()
            .map(|one| one[key].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(of("name"), ["a", "b", "a (again)"]);
    assert_eq!(of("is_control"), [false, false, true]);
    assert_eq!(series[1]["samples"].as_array().unwrap().len(), 2);
    assert!(series[1]["metrics"]["p99"]["ratio"]["median"].is_f64());
    let svg = fs::read_to_string(svg).unwrap();
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    assert!(svg.contains(">a<") && svg.contains(">b<"), "both are named");
    a.assert_is_gone();
    b.assert_is_gone();
}

#[test]
fn servers_on_a_unix_socket_are_compared_there() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    let socket = socket.to_str().unwrap();
    let program = env!("CARGO_BIN_EXE_greenroom");
    let server = format!(
        "a={program} serve --no-access-log --listen unix:{socket} http://nowhere.invalid/hello"
    );
    let flags = ["--rounds", "1", "--unix-socket", socket];
    compare(&flags, &[&server]).expect_status(0);
}

#[test]
fn servers_that_respond_differently_are_not_compared() {
    let (a, b) = (
        Contender::new("a", "/hello"),
        Contender::new("b", "/health"),
    );
    let servers = [a.argument.as_str(), b.argument.as_str()];
    let run = compare(&["-q", "--rounds", "1"], &servers).expect_status(1);
    assert!(
        run.stderr.contains("the first responses of a and b differ"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("Hello, world!"), "{}", run.stderr);
    a.assert_is_gone();
    b.assert_is_gone();
    let flags = ["-q", "--rounds", "1", "--allow-different-answers"];
    compare(&flags, &servers)
        .expect_status(0)
        .assert_prints(&["b beside a", "differ"]);
}

#[test]
fn servers_that_do_not_start_are_told_with_their_reason() {
    let a = Contender::new("a", "/hello");
    let free = address();
    let program = env!("CARGO_BIN_EXE_greenroom");
    for (command, texts) in [
        (
            "/no/such/program".to_owned(),
            ["b: cannot start", "/no/such/program"],
        ),
        (
            format!("{program} serve --wrong"),
            ["b: the server ended", "'--wrong'"],
        ),
        (
            "sleep 60".to_owned(),
            ["b: nothing accepts connections", "300ms"],
        ),
    ] {
        let b = format!("b={command} http://{free}/");
        let flags = ["-q", "--start-timeout", "300ms"];
        // The other has to start in that time as well.
        let flags = if command == "sleep 60" {
            &flags[..]
        } else {
            &flags[..1]
        };
        let run = compare(flags, &[&b, &a.argument]).expect_status(1);
        for text in texts {
            assert!(run.stderr.contains(text), "{command}: {}", run.stderr);
        }
        a.assert_is_gone();
    }
}

#[test]
fn occupied_address_is_not_measured_for_another() {
    let other = program::Running::serve(&[]);
    let b = format!("b=sleep 60 http://{}/hello", other.address);
    let run = compare(&["-q"], &[&b]).expect_status(1);
    assert!(
        run.stderr.contains("before this server was started"),
        "{}",
        run.stderr
    );
}

#[test]
fn wrong_command_lines_start_nothing() {
    let a = Contender::new("a", "/hello");
    for (flags, servers, text) in [
        (&[][..], &[][..], "--server <NAME=COMMAND URL>"),
        (&[], &["a"], "NAME=COMMAND URL"),
        (&[], &["a=http://127.0.0.1:1/"], "as the last word"),
        (
            &[],
            &[a.argument.as_str(), a.argument.as_str()],
            "the name \"a\"",
        ),
        (&["--rounds", "0"], &[a.argument.as_str()], "1..=99"),
        (&["--load-cores", "9999"], &[a.argument.as_str()], "9999"),
        (
            &["--json", "/no/where"],
            &[a.argument.as_str()],
            "/no/where",
        ),
        (&["-t", "0"], &[a.argument.as_str()], "longer than 0"),
        (
            &["-X", "127.0.0.1:1"],
            &[a.argument.as_str()],
            "-X: a comparison",
        ),
    ] {
        let run = compare(flags, servers).expect_status(2);
        assert!(
            run.stderr.contains(text),
            "{flags:?} {servers:?}: {}",
            run.stderr
        );
        a.assert_is_gone();
    }
}

#[test]
fn interrupted_comparison_reports_whole_rounds_and_leaves_no_server() {
    let (a, b) = (Contender::new("a", "/hello"), Contender::new("b", "/hello"));
    let servers = [a.argument.as_str(), b.argument.as_str()];
    let mut early = Measuring::start(&arguments(&["--rounds", "99"], &servers));
    early.wait_for_line(|line| line == "round 1 of 99: b");
    early.signal(Signal::INT);
    let early = early.finish().expect_status(130);
    assert!(
        early.stderr.contains("before the first round was complete"),
        "{}",
        early.stderr
    );
    let mut late = Measuring::start(&arguments(&["--rounds", "99"], &servers));
    late.wait_for_line(|line| line == "round 2 of 99: b");
    late.signal(Signal::TERM);
    late.finish()
        .expect_status(130)
        .assert_prints(&["a, b: 1 of 99 rounds", "b beside a"]);
    a.assert_is_gone();
    b.assert_is_gone();
}

#[test]
fn a_second_signal_leaves_no_server_either() {
    let a = Contender::new("a", "/hello");
    let mut run = Measuring::start(&arguments(&["-t", "1h"], &[&a.argument]));
    run.wait_for_responses();
    for signal in [Signal::INT, Signal::TERM, Signal::INT] {
        run.signal(signal);
    }
    run.finish().expect_status(130);
    a.assert_is_gone();
}
