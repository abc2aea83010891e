//! The report beside ab's own fields, as scripts and people read it.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::*;
use crate::record::FailureKind;
use crate::report::sample;
use crate::run::StreamMeasurement;
use crate::verdict::ServerUsage;

fn report(measurement: &Measurement) -> String {
    sample::text_of(|out| write(out, measurement, &TextOptions::default()))
}

fn of_stream(stream: StreamMeasurement) -> String {
    report(&sample::measurement(vec![stream]))
}

/// Returns an open loop with every kind of event: late and missing requests, two statuses,
/// failures, a second stream.
fn eventful() -> Measurement {
    let mut stream = sample::open_loop("http://host:81/a", 1000.0, 1);
    for _ in 0..800 {
        sample::response(&mut stream, 200, 9, 10);
    }
    for _ in 0..90 {
        sample::response(&mut stream, 503, 90, 99);
    }
    for _ in 0..10 {
        sample::failure(&mut stream, FailureKind::Timeout, 2000);
    }
    stream.tally.counts.due = 1000;
    stream.tally.counts.late_for_connection = 12;
    stream.tally.counts.late_by_generator = 6;
    let mut also = sample::stream("http://host:81/hello");
    also.plan.name = "hello".into();
    sample::response(&mut also, 200, 1, 2);
    sample::failure(&mut also, FailureKind::Reset, 1);
    let mut run = sample::measurement(vec![stream, also]);
    run.interrupted = true;
    run.streams[1].unfinished = 3;
    run.server = Some(ServerUsage {
        processes: 2,
        user: Duration::from_millis(902),
        system: Duration::from_millis(1804),
        rss_bytes_max: 3 * 1024 * 1024,
        threads_max: 1,
        ..ServerUsage::default()
    });
    run
}

/// Returns the output of a script that reads the report.
fn script(script: &str, report: &str) -> String {
    let mut shell = Command::new("sh")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("there is a shell");
    let mut input = shell.stdin.take().expect("it is piped");
    input.write_all(report.as_bytes()).expect("it is read");
    drop(input);
    let output = shell.wait_with_output().expect("it ends");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn scripts_that_parse_ab_get_their_numbers() {
    let report = report(&eventful());
    for (text, printed) in [
        ("grep 'Requests per second' | awk '{print $4}'", "890.00\n"),
        ("awk '/Requests per second/ {print $4}'", "890.00\n"),
        ("awk '/99%/ {print $2}'", "2001\n"),
        ("awk '$1 == \"50%\" {print $2}'", "10\n"),
        ("awk '/longest request/ {print $2}'", "2001\n"),
        ("grep 'Failed requests' | awk '{print $3}'", "10\n"),
        ("awk '/Complete requests/ {print $NF}'", "890\n"),
        ("awk '/Non-2xx/ {print $3}'", "90\n"),
        ("grep 'Time taken for tests' | awk '{print $5}'", "1.000\n"),
        ("grep -c 'Time per request.*mean)'", "1\n"),
        ("grep -c 'Time per request'", "2\n"),
        (
            "awk -F': +' '/^Transfer rate/ {print $2}'",
            "0.00 [Kbytes/sec] received\n",
        ),
        ("awk '/^Total:/ {print $2, $5, $6}'", "10 10 2001\n"),
        (
            "awk '/^(Connect|Processing|Waiting):/ {print $6}'",
            "0\n99\n90\n",
        ),
        ("grep -cE '[0-9]+%'", "9\n"),
        ("tail -1", " 100%   2001 (longest request)\n"),
    ] {
        assert_eq!(script(text, &report), printed, "{text}\n{report}");
    }
}

#[test]
fn sections_tell_what_ab_does_not_know() {
    let report = report(&eventful());
    for expected in [
        "\n*** THE ASKED RATE WAS MISSED ***\n  http://host:81/a: 100 of the 1000 requests that \
        were due were never sent (10.0 %)\n",
        "\nInterrupted after 1.000 s\n  Requests under way that were not waited for: 3\n",
        "\nOpen loop\n  Asked:        1000 per second for 1 s\n  Due:          1000 requests, \
        1000.00 per second\n  Sent:         900 requests, 900.00 per second\n",
        "  Sent late:    18 by more than 1 ms (2.0 %): 12 for want of a free connection, 6 \
        because this program was late\n  Never sent:   100 (10.0 %)\n",
        "\nResponses by status\n  200           800\n  503            90\n",
        "\nFailures by kind\n  timeout                 10  no whole response came in time \
        (-s)\n                              first: what the first timeout said\n",
        "\nFailures of further streams\n  hello\n  reset                    1  ",
        "\nCPU time (us/request)\n                    user    system      both\n  \
        Generator        2.217     6.652     8.869  1 thread, the busiest at 0.8 %\n  \
        Server        1000.000  2000.000  3000.000  2 processes, 1 thread, RSS 3.0 MiB\n",
    ] {
        assert!(report.contains(expected), "{expected}\n---\n{report}");
    }
}

#[test]
fn latency_stands_beside_service_time_in_aligned_columns() {
    let report = report(&eventful());
    let lines = report.lines();
    let mut table = lines.skip_while(|line| !line.starts_with("Latency from the intended time"));
    table.next();
    let heading = table.next().expect("a heading");
    assert_eq!(
        heading.split_whitespace().collect::<Vec<_>>(),
        ["p50", "p90", "p99", "p99.9", "p99.99", "max"]
    );
    let labels = [
        "Latency  ",
        "Service time",
        "Status below 400",
        "Status 400 and above",
        "Timed out",
    ];
    for label in labels {
        let line = table.next().expect(label);
        assert!(line.trim_start().starts_with(label), "{line}");
        assert_eq!(line.len(), heading.len(), "{line}");
    }
}

#[test]
fn a_further_stream_has_its_own_line() {
    let report = report(&eventful());
    let line = report.lines().find(|line| line.ends_with("  hello"));
    let words: Vec<_> = line.expect("a line").split_whitespace().collect();
    assert_eq!(words[..3], ["1", "1.00", "1"]);
    assert_eq!((words.len(), words[8]), (9, "hello"));
    assert!(words[3].starts_with("2.00") && words[7].starts_with("2.00"));
}

#[test]
fn a_quiet_run_has_only_what_it_needs() {
    let mut stream = sample::stream("http://host/");
    for _ in 0..2 {
        sample::response(&mut stream, 200, 1, 2);
    }
    let report = of_stream(stream);
    for absent in [
        "***",
        "Open loop",
        "status",
        "Failures",
        "Further",
        "Interrupted",
        "Server  ",
    ] {
        assert!(!report.contains(absent), "{absent}\n{report}");
    }
    assert!(report.contains("\nLatency from the begin of connecting or sending, "));
}

#[test]
fn a_run_without_responses_divides_by_nothing() {
    let mut stream = sample::stream("http://host/");
    sample::failure(&mut stream, FailureKind::Refused, 0);
    let mut run = sample::measurement(vec![stream]);
    run.gave_up = true;
    for elapsed in [Duration::from_secs(2), Duration::ZERO] {
        run.elapsed = elapsed;
        run.streams[0].elapsed = elapsed;
        let report = report(&run);
        assert!(report.contains(
            "\nComplete requests:      0\n\
            Failed requests:        1\n   (Connect: 1, Receive: 0, Length: 0, Exceptions: 0)\n"
        ));
        assert!(report.contains("s: nothing responded\n"));
        assert!(report.contains("is the server running?"));
        for absent in [
            "NaN",
            "inf",
            "Requests per second",
            "Percentage",
            "Connection Times",
        ] {
            assert!(!report.contains(absent), "{absent}\n{report}");
        }
    }
}

#[test]
fn the_closing_table_can_be_left_out() {
    let options = TextOptions {
        without_percentages: true,
        ..TextOptions::default()
    };
    let text = sample::text_of(|out| write(out, &eventful(), &options));
    assert!(!text.contains("Percentage of the requests"));
}

#[test]
fn an_open_loop_is_as_concurrent_as_it_came_to_be() {
    let mut stream = sample::open_loop("http://host/", 1000.0, 1);
    stream.plan.connections = 20_000;
    stream.plan.in_flight_max = 8;
    // Each on a connection of its own.
    stream.in_flight_most = 3;
    for _ in 0..5 {
        sample::response(&mut stream, 200, 3, 4);
    }
    let report = of_stream(stream);
    assert!(report.contains("\nConcurrency Level:      3\n"), "{report}");
    assert!(
        report.contains("\nTime per request:       4.00"),
        "{report}"
    );
}

#[test]
fn what_a_server_says_commands_no_terminal() {
    let mut stream = sample::stream("http://host/");
    stream.first = Some(sample::first(
        "HTTP/1.1 200 OK\r\nServer: \x1b[2Jevil\r\n\r\n",
        0,
    ));
    let said = || "not HTTP: \x1b]0;\x07\nnext".to_owned();
    stream.tally.failed(FailureKind::Malformed, 0, said);
    let report = of_stream(stream);
    assert!(
        report.starts_with("Server Software:        ?[2Jevil\n"),
        "{report}"
    );
    assert!(report.contains("first: not HTTP: ?]0;??next\n"), "{report}");
}
