//! Tests of telling of requests: ids, the slow log, `Server-Timing`, a sample in the access
//! log, the journal, and logs that cannot be written.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use crate::outside::wait::until;
use crate::ports::free_port;
use crate::program::{Running, read_to_end};
use crate::site::{Directory, Response, Site, begin};

const PATIENCE: Duration = Duration::from_mins(1);

/// A Perl application that takes 200 ms for `/slow`, and tells the id of its request.
const APPLICATION: &str = r"
sub {
    my $env = shift;
    select undef, undef, undef, 0.2 if $env->{PATH_INFO} eq '/slow';
    [200, ['Content-Type' => 'text/plain'], [$env->{HTTP_X_REQUEST_ID} // 'none']];
}
";

fn ask(server: &Running, path: &str, lines: &str) -> Response {
    let lines = format!("Host: localhost\r\n{lines}");
    let response = read_to_end(begin(&server.address, "GET", path, &lines));
    Response::parse(response.as_bytes())
}

fn perl(flags: &[&str]) -> Site {
    let directory = Directory::new("[[site]]\nroute = { path = \"/\", psgi = \"app.psgi\" }\n");
    directory.write("app.psgi", APPLICATION);
    Site::serve(directory, flags)
}

/// Returns the fields of a line in JSON.
fn fields(line: &str) -> HashMap<String, serde_json::Value> {
    let mut line: serde_json::Value = serde_json::from_str(line).expect(line);
    serde_json::from_value(line["fields"].take()).expect("an object")
}

/// Returns the times of a slow request in microseconds, and asserts that they make up the whole.
#[track_caller]
fn times(line: &str) -> impl Fn(&str) -> u64 {
    let fields = fields(line);
    let line = line.to_owned();
    let time = move |name: &str| {
        let time = fields[&format!("{name}_micros")].as_u64();
        time.unwrap_or_else(|| panic!("{name}: {line}"))
    };
    let parts = [
        "head",
        "queue",
        "poll",
        "worker_queue",
        "worker",
        "waiting",
        "write",
    ];
    let sum: u64 = parts.iter().map(|part| time(part)).sum();
    let total = time("total");
    // Each is rounded down.
    assert!(total <= sum + parts.len() as u64, "{sum} of {total}");
    // A worker begins before the poll is over that sends it the request: only what is left of the
    // time was waited.
    assert!(sum <= total || time("waiting") == 0, "{sum} of {total}");
    time
}

#[test]
fn the_slow_log_says_where_the_time_of_a_staged_request_went() {
    let server = Running::serve(&["--slow-log-min", "100ms", "--log-format", "json"]);
    assert_eq!(ask(&server, "/hello", "").status, 200);
    assert_eq!(ask(&server, "/block/200?secret=1", "").status, 200);
    let line = server.wait_for_log("\"greenroom::slow\"");
    let time = times(&line);
    // The poll may end after its response: its thread has passed that on, and lost its core.
    let least = time("poll").min(time("total"));
    assert!(least >= 190_000, "{line}");
    let fields = fields(&line);
    assert_eq!(
        fields["path"], "/block/200",
        "the query may hold secrets: {line}"
    );
    assert_eq!(fields["route"], "/block/{ms}");
    assert_eq!(
        (&fields["method"], &fields["status"]),
        (&"GET".into(), &200.into())
    );
    assert!(fields["stage"].is_string(), "{line}");
    assert!(
        !fields.contains_key("request_id") && !fields.contains_key("worker_pid"),
        "{line}"
    );
}

#[test]
fn the_slow_log_says_where_the_time_of_a_perl_request_went() {
    let flags = [
        "--slow-log-min",
        "100ms",
        "--log-format",
        "json",
        "--request-id",
    ];
    let site = perl(&flags);
    let response = site.get("/slow");
    let line = site.server.wait_for_log("\"greenroom::slow\"");
    let time = times(&line);
    assert!(
        (190_000..=time("total")).contains(&time("worker")),
        "{line}"
    );
    let fields = fields(&line);
    assert!(
        fields["worker_pid"].as_u64().is_some_and(|pid| pid > 1),
        "{line}"
    );
    assert_eq!(
        Some(fields["request_id"].as_str().unwrap()),
        response.field("x-request-id")
    );
}

#[test]
fn only_trusted_proxies_name_a_request() {
    for (flags, is_taken_over) in [
        (["--request-id"].as_slice(), false),
        (&["--request-id", "--trusted-proxy", "127.0.0.1"], true),
    ] {
        let site = perl(flags);
        let response = ask(&site.server, "/", "X-Request-Id: mine\r\n");
        let id = response
            .field("x-request-id")
            .expect("it has an id")
            .to_owned();
        assert_eq!(id == "mine", is_taken_over, "{id}");
        assert_eq!(response.text(), id, "the application has the same");
        if !is_taken_over {
            assert_eq!(id.len(), 32, "{id}");
        }
        let line = site.server.wait_for_log("greenroom::access");
        assert!(line.contains(&format!("request_id=\"{id}\"")), "{line}");
    }
    let site = perl(&[]);
    let response = site.get("/");
    assert_eq!(
        (response.field("x-request-id"), &*response.text()),
        (None, "none")
    );
}

#[test]
fn server_timing_is_for_those_who_may_know() {
    let asks = "X-Server-Timing: 1\r\n";
    let trusting = ["--server-timing", "trusted", "--trusted-proxy", "127.0.0.1"];
    for (flags, lines, expected) in [
        ([].as_slice(), asks, false),
        (&trusting[..2], asks, false),
        (&trusting, "", false),
        (&trusting, asks, true),
        (&["--server-timing", "all"], "", true),
    ] {
        let server = Running::serve(flags);
        let response = ask(&server, "/block/20", lines);
        let field = response.field("server-timing");
        assert_eq!(field.is_some(), expected, "{flags:?}: {field:?}");
        if let Some(field) = field {
            let poll = field
                .split(", ")
                .find_map(|part| part.strip_prefix("poll;dur="));
            let poll: f64 = poll.expect(field).parse().expect(field);
            assert!(poll >= 19.0, "{field}");
        }
    }
}

#[test]
fn a_sample_of_the_access_log_keeps_what_failed_or_was_slow() {
    let flags = [
        "--access-log-sample",
        "1/1000000",
        "--slow-log-min",
        "100ms",
    ];
    let server = Running::serve(&flags);
    for _ in 0..50 {
        assert_eq!(ask(&server, "/hello", "").status, 200);
    }
    assert_eq!(ask(&server, "/nowhere", "").status, 404);
    let line = server.wait_for_log("greenroom::access");
    assert!(line.contains("status=404"), "{line}");
    assert_eq!(ask(&server, "/block/150", "").status, 200);
    let line = server.wait_for_log("greenroom::access");
    assert!(line.contains("target=/block/150"), "{line}");
}

fn skip(reason: &str) {
    writeln!(std::io::stderr(), "SKIPPED: {reason}").expect("it can be written");
}

#[test]
fn lines_go_to_the_journal() {
    let socket = Path::new("/run/systemd/journal/socket");
    if socket.exists() {
        skip("the journal of this machine is not to have lines of tests");
        return;
    }
    let directory = socket.parent().expect("it has one");
    if fs::create_dir_all(directory).is_err() {
        skip("the directory of the journal's socket cannot be made");
        return;
    }
    let refused =
        crate::program::output(&["serve", "-l", "127.0.0.1:0", "--log-format", "journald"]);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && error.contains("/run/systemd/journal/socket"),
        "{error}"
    );
    let journal = UnixDatagram::bind(socket).expect("nobody else has it");
    journal
        .set_read_timeout(Some(PATIENCE))
        .expect("it is not zero");
    let mut server = Running::spawn(&mut crate::program::command(&[
        "serve",
        "-l",
        "127.0.0.1:0",
        "--log-format",
        "journald",
    ]));
    let mut line = vec![0; 65_536];
    let mut received = || {
        let length = journal.recv(&mut line).expect("a line comes");
        String::from_utf8_lossy(&line[..length]).into_owned()
    };
    let listening = loop {
        let line = received();
        if line.contains("listening") {
            break line;
        }
    };
    fs::remove_file(socket).expect("it is there");
    assert!(
        listening.starts_with("PRIORITY=6\nSYSLOG_IDENTIFIER=greenroom\n"),
        "{listening}"
    );
    let address = listening
        .lines()
        .find_map(|line| line.strip_prefix("GREENROOM_ADDRESS="));
    address
        .expect("it is a field")
        .clone_into(&mut server.address);
    assert!(server.get("/hello").ends_with("Hello, world!\n"));
}

/// Waits until the metric has this value.
#[track_caller]
fn await_metric(admin: &str, name: &str, value: usize) {
    let expected = format!("{name} {value}");
    let metrics = || {
        read_to_end(begin(
            admin,
            "GET",
            "/greenroom/metrics",
            "Host: localhost\r\n",
        ))
    };
    let is_there = |text: &String| text.lines().any(|line| line == expected);
    until(&expected, PATIENCE, metrics, is_there);
}

/// Returns the number of lines in a line that tells of losses, of those that were not written.
fn unwritten(line: &str) -> usize {
    let (_, number) = line.split_once("unwritten=").expect(line);
    let (number, _) = number.split_once(' ').expect(line);
    number.parse().expect(line)
}

#[test]
fn an_access_log_that_cannot_be_written_says_so_and_once_it_can_what_was_lost() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("access.log");
    symlink("/dev/full", &file).unwrap();
    let admin = format!("127.0.0.1:{}", free_port());
    let path = file.to_str().unwrap();
    let mut server = Running::serve(&["--access-log", path, "--status-listen", &admin]);
    // Of lines that are so long, one is kept.
    let long = format!("/hello?{}", "a".repeat(3_000));
    for _ in 0..3 {
        assert!(server.get(&long).ends_with("Hello, world!\n"));
    }
    let line = server.wait_for_log("the access log cannot be written");
    assert!(line.contains("No space left on device"), "{line}");
    let metric = "greenroom_log_lines_dropped_total{log=\"access\",reason=\"unwritten\"}";
    await_metric(&admin, metric, 2);
    fs::remove_file(&file).unwrap();
    server.signal(Signal::USR1);
    let mut sent = 3;
    // The signal may come after a request that was sent after it.
    let is_reopened = || {
        sent += 1;
        server.get("/hello");
        file.exists()
    };
    until("a new file", PATIENCE, is_reopened, |is_there| *is_there);
    let line = server.wait_for_log("the log takes all lines again");
    let lost = unwritten(&line);
    assert!(lost >= 2 && line.contains("log=\"access\""), "{line}");
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
    let written = fs::read_to_string(&file).unwrap();
    assert_eq!(written.lines().count() + lost, sent, "{written}");
    let rest = server.rest_of_log();
    let told = rest.last().expect("it has lines");
    assert!(told.contains("log lines were lost"), "{rest:#?}");
    assert_eq!(unwritten(told), lost, "{rest:#?}");
}

#[test]
fn an_error_log_that_cannot_be_written_says_so_on_standard_error() {
    let address = format!("127.0.0.1:{}", free_port());
    let flags = ["serve", "-l", &address, "--error-log", "/dev/full"];
    let mut server = Running::spawn(&mut crate::program::command(&flags));
    let line = server.wait_for_log("the error log cannot be written");
    assert!(line.contains("No space left on device"), "{line}");
    server.address = address;
    assert!(server.get("/hello").ends_with("Hello, world!\n"));
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
    let rest = server.rest_of_log();
    let last = rest.last().expect("it has lines");
    assert!(last.contains("the error log has lost "), "{rest:#?}");
    assert!(!last.contains("lost 0 lines"), "{rest:#?}");
}
