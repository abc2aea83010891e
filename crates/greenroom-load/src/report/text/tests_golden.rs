//! This program's report beside those of ab 2.3 in `golden/`, which it printed of real runs.

use std::time::Duration;

use super::*;
use crate::record::ResponseRecord;
use crate::report::sample;
use crate::run::StreamMeasurement;

const CLOSED: &str = include_str!("golden/closed.txt");
const KEEP_ALIVE: &str = include_str!("golden/keep_alive.txt");
const LENGTH: &str = include_str!("golden/length.txt");
const NOT_2XX: &str = include_str!("golden/not_2xx.txt");
const POST: &str = include_str!("golden/post.txt");
const SHORT: &str = include_str!("golden/short.txt");
const TLS: &str = include_str!("golden/tls.txt");
/// ab's `-e` of the run of `closed.txt`; of its 20 requests, every fifth row has the next one's
/// time.
const CLOSED_TIMES: &str = include_str!("golden/closed.csv");

/// A request's times in microseconds.
#[derive(Clone, Copy)]
struct Request {
    connect: u64,
    waiting: u64,
    total: u64,
}

/// A request quick enough to be 0 ms.
const QUICK: Request = Request {
    connect: 50,
    waiting: 100,
    total: 200,
};

/// Returns a stream with these requests, each on a connection of its own, that took so many
/// microseconds.
fn stream(url: &str, elapsed: u64, status: u16, requests: &[Request]) -> StreamMeasurement {
    let mut stream = sample::stream(url);
    stream.elapsed = Duration::from_micros(elapsed);
    // Each ended by its time.
    stream.plan.end.requests = None;
    for request in requests {
        stream.tally.counts.sent += 1;
        stream.tally.counts.connections += 1;
        stream.tally.connect.record(request.connect * 1000);
        stream.tally.responded(&ResponseRecord {
            status,
            intended: 0,
            sent: request.connect * 1000,
            first_byte: (request.connect + request.waiting) * 1000,
            done: request.total * 1000,
            connect: Some(request.connect * 1000),
            body_bytes: 0,
        });
    }
    stream
}

fn bytes(stream: &mut StreamMeasurement, received: u64, body: u64, sent: u64) {
    stream.tally.counts.received_bytes = received;
    stream.tally.counts.body_bytes = body;
    stream.tally.counts.sent_bytes = sent;
}

fn report(stream: StreamMeasurement, without_deviation: bool) -> String {
    let options = TextOptions {
        without_deviation,
        ..TextOptions::default()
    };
    let run = sample::measurement(vec![stream]);
    sample::text_of(|out| write(out, &run, &options))
}

/// Asserts that ab's report is in ours: the lines before our sections, and the closing table.
fn assert_has(ours: &str, ab: &str, normalise: fn(&str) -> String) {
    let (head, percentages) = ab.split_once("\nPercentage").expect("ab's closing table");
    let (fields, table) = head
        .split_once("\nConnection")
        .expect("ab's table of times");
    assert!(ours.starts_with(fields), "{ours}\n--- ab:\n{ab}");
    let ours = normalise(&ours[fields.len()..]);
    assert!(
        ours.starts_with(&normalise(&format!("\nConnection{table}\n"))),
        "{ours}\n--- ab:\n{ab}"
    );
    assert!(
        ours.ends_with(&normalise(&format!("\n\nPercentage{percentages}"))),
        "{ours}\n--- ab:\n{ab}"
    );
}

fn exact(text: &str) -> String {
    text.to_owned()
}

/// Keeps columns as they are, with every digit a 0.
fn layout(text: &str) -> String {
    text.replace(|character: char| character.is_ascii_digit(), "0")
}

#[test]
fn the_same_times_give_the_same_report_to_the_character() {
    let rows = CLOSED_TIMES.lines().skip(1).step_by(5).take(20);
    let totals = rows.map(|row| row.split_once(',').expect("two columns").1);
    // Their connect times are unknown, but below half a millisecond, and some 0.1 ms apart.
    let requests = totals.zip([100, 250].into_iter().cycle());
    let requests = requests.map(|(milliseconds, connect)| {
        let total = milliseconds.replace('.', "").parse().expect("a time");
        Request {
            connect,
            waiting: total - connect - 20,
            total,
        }
    });
    let requests: Vec<_> = requests.collect();
    let mut stream = stream("http://127.0.0.1:18444/a?b=c", 996_460, 200, &requests);
    stream.plan.connections = 4;
    bytes(&mut stream, 2220, 260, 1000);
    stream.first = Some(sample::first(
        "HTTP/1.0 200 OK\r\nServer: Fixture/1.0\r\n\r\n",
        13,
    ));
    assert_has(&report(stream, false), CLOSED, exact);
}

#[test]
fn without_deviation_the_table_is_ab_s_short_one() {
    let times = [22, 51, 52, 141, 142, 401, 401, 401, 401];
    let request = |total: &u64| Request {
        connect: 100,
        waiting: total * 1000 - 200,
        total: total * 1000,
    };
    let requests: Vec<_> = times.iter().map(request).collect();
    let mut stream = stream("http://127.0.0.1:18444/", 943_572, 200, &requests);
    stream.plan.connections = 3;
    bytes(&mut stream, 999, 117, 1000);
    stream.first = Some(sample::first(
        "HTTP/1.0 200 OK\r\nServer: Fixture/1.0\r\n\r\n",
        13,
    ));
    assert_has(&report(stream, true), SHORT, layout);
}

#[test]
fn kept_connections_are_counted_as_in_ab() {
    let mut stream = stream("http://127.0.0.1:18431/", 36_605, 200, &vec![QUICK; 2000]);
    stream.plan.connections = 20;
    stream.plan.keep_alive = true;
    stream.tally.counts.connections = 20;
    stream.tally.counts.reused = 1980;
    bytes(&mut stream, 12_278_000, 11_698_000, 1000);
    stream.first = Some(sample::first("HTTP/1.1 200 OK\r\n\r\n", 5849));
    assert_has(&report(stream, false), KEEP_ALIVE, layout);
}

#[test]
fn other_statuses_are_counted_as_in_ab() {
    let mut stream = stream("http://127.0.0.1:18431/nosuch", 11_652, 404, &[QUICK; 100]);
    stream.plan.connections = 2;
    bytes(&mut stream, 19_500, 5200, 1000);
    stream.first = Some(sample::first("HTTP/1.1 404 Not Found\r\n\r\n", 52));
    assert_has(&report(stream, false), NOT_2XX, layout);
}

#[test]
fn sent_bodies_have_ab_s_lines() {
    let request = |total| Request {
        connect: 100,
        waiting: total - 200,
        total,
    };
    let requests = [21_000, 21_000, 31_000, 141_000, 401_000].map(request);
    let mut stream = stream("http://127.0.0.1:18444/", 615_280, 200, &requests);
    stream.plan.request.body = b"hello\n".to_vec();
    bytes(&mut stream, 555, 65, 675);
    stream.first = Some(sample::first(
        "HTTP/1.0 200 OK\r\nServer: Fixture/1.0\r\n\r\n",
        13,
    ));
    assert_has(&report(stream, false), POST, layout);
}

#[test]
fn responses_of_another_length_fail_as_in_ab() {
    let slow = Request {
        connect: 50,
        waiting: 200_000,
        total: 201_000,
    };
    let mut requests = [QUICK; 50];
    requests[29] = slow;
    let mut stream = stream("http://127.0.0.1:18444/", 230_330, 200, &requests);
    stream.plan.keep_alive = true;
    stream.tally.counts.other_length = 7;
    bytes(&mut stream, 5828, 278, 1000);
    stream.first = Some(sample::first(
        "HTTP/1.0 200 OK\r\nServer: BaseHTTP/0.6\r\n\r\n",
        5,
    ));
    assert_has(&report(stream, false), LENGTH, layout);
}

#[test]
fn tls_has_ab_s_lines_and_so_have_doubtful_means() {
    let connects = [2000, 2100, 3200, 3600, 3600, 3600, 3600, 3700, 3800, 3900];
    let requests = connects.map(|connect| Request {
        connect,
        waiting: 100,
        total: connect + 250,
    });
    let mut stream = stream("https://localhost:18443/", 21_843, 200, &requests);
    stream.plan.connections = 2;
    bytes(&mut stream, 51_680, 51_240, 1000);
    let mut first = sample::first("HTTP/1.0 200 ok\r\n\r\n", 5124);
    first.tls = Some("TLSv1.3,TLS_AES_256_GCM_SHA384,2048,256".into());
    stream.first = Some(first);
    // The key exchange is the one line of ab's that is missing here.
    let is_told = |line: &&str| !line.starts_with("Server Temp Key:");
    let ab: Vec<_> = TLS.lines().filter(is_told).collect();
    assert_has(&report(stream, false), &(ab.join("\n") + "\n"), layout);
}

#[test]
fn lengths_may_vary() {
    let mut stream = stream("http://host/", 100_000, 200, &[QUICK]);
    stream.plan.variable_length = true;
    assert!(report(stream, false).contains("\nDocument Length:        Variable\n"));
}
