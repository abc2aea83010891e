//! Whole comparisons of running servers, with a load generator of this file's own.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, WaitId, WaitIdOptions};
use rustix::thread::{CpuSet, sched_getaffinity};

use super::cores::Cores;
use super::rounds::run_with;
use super::{Check, CompareError, Comparison, Contender, Outcome, Step, write_text};
use crate::plan::{Plan, StreamPlan, Target};
use crate::record::{ByRate, FirstResponse, ResponseRecord, Tally, Timeline};
use crate::run::{Measurement, Progress, RunError, Stop, StreamMeasurement};
use crate::verdict::{Processes, ThreadUsage};

/// The variable that gives a process of this test's own program its port, and the body of its
/// responses.
const PORT: &str = "GREENROOM_TEST_PORT";
const BODY: &str = "GREENROOM_TEST_BODY";

#[test]
#[ignore = "the server that the other tests compare"]
fn serves() {
    let port = std::env::var(PORT)
        .expect("a port")
        .parse()
        .expect("a number");
    let body = std::env::var(BODY).expect("a body");
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("a port that is free");
    for stream in listener.incoming().flatten() {
        respond(stream, &body);
    }
}

/// Responds to a request; clients that only probe the port send nothing.
fn respond(mut stream: TcpStream, body: &str) {
    let mut request = [0; 1024];
    if matches!(stream.read(&mut request), Ok(1..)) {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        let _ = stream.write_all(format!("{head}{body}").as_bytes());
    }
}

/// Returns a contender that is a process of this program, started through a shell that stays its
/// parent.
fn contender(name: &str, body: &str) -> Contender {
    let port = free_port();
    let program = std::env::current_exe().expect("this program has a path");
    let serve = format!(
        "{PORT}={port} {BODY}={body} {} --exact compare::tests::serves --ignored; exit",
        program.display()
    );
    Contender {
        name: name.to_owned(),
        command: ["sh", "-c", &serve].map(ToOwned::to_owned).to_vec(),
        target: target(port),
    }
}

/// Returns a port below the kernel's ephemeral range, so that no connection takes it meanwhile.
fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = std::process::id() * 64 + NEXT.fetch_add(1, Ordering::Relaxed);
        let port = u16::try_from(20_000 + number % 12_000).expect("below 32,000");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

fn target(port: u16) -> Target {
    let url = format!("http://127.0.0.1:{port}/");
    url.parse().expect("a URL")
}

fn comparison(contenders: Vec<Contender>) -> Comparison {
    let mut template = StreamPlan::new(target(1));
    template.end.requests = Some(20);
    Comparison {
        rounds: 2,
        warm_up: Duration::ZERO,
        ..Comparison::new(contenders, template)
    }
}

/// Sends requests one after the other, as a closed loop with one connection each.
#[expect(clippy::unnecessary_wraps, reason = "it has the form of any load")]
fn load(
    plan: &Plan,
    mut server: Option<Processes>,
    _stop: &Stop,
    _progress: &mut dyn FnMut(&Progress<'_>),
) -> Result<Measurement, RunError> {
    let begin = Instant::now();
    let plan = plan.streams[0].clone();
    let mut tally = Tally::default();
    let mut first = None;
    if let Some(server) = &mut server {
        server.sample();
    }
    for _ in 0..plan.end.requests.unwrap_or(1) {
        let (sent, text) = (since(begin), request(plan.targets[0].port()));
        first.get_or_insert_with(|| first_response(&text));
        tally.counts.sent += 1;
        tally.responded(&ResponseRecord {
            status: 200,
            intended: sent,
            sent,
            first_byte: sent,
            done: since(begin),
            connect: None,
            body_bytes: 0,
        });
    }
    if let Some(server) = &mut server {
        server.sample();
    }
    Ok(measurement(
        plan,
        tally,
        first,
        begin.elapsed(),
        server.as_ref(),
    ))
}

fn since(begin: Instant) -> u64 {
    begin.elapsed().as_nanos().try_into().expect("a short test")
}

fn request(port: u16) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it accepts");
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("a response");
    text
}

fn first_response(text: &str) -> FirstResponse {
    let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
    FirstResponse {
        head: head.as_bytes().to_vec(),
        body: body.as_bytes().to_vec(),
        body_bytes: body.len() as u64,
        tls: None,
    }
}

fn measurement(
    plan: StreamPlan,
    tally: Tally,
    first: Option<FirstResponse>,
    elapsed: Duration,
    server: Option<&Processes>,
) -> Measurement {
    let stream = StreamMeasurement {
        plan,
        elapsed,
        tally,
        timeline: Timeline::new(Duration::from_secs(1)),
        by_rate: ByRate::default(),
        first,
        records: Vec::new(),
        in_flight_most: 0,
        unfinished: 0,
    };
    Measurement {
        started: SystemTime::now(),
        elapsed,
        interrupted: false,
        gave_up: false,
        streams: vec![stream],
        generator: vec![ThreadUsage {
            elapsed,
            ..ThreadUsage::default()
        }],
        server: server.map(Processes::usage),
    }
}

fn compare(comparison: &Comparison) -> Result<Outcome, CompareError> {
    run_with(comparison, &Stop::default(), &mut |_| (), &mut load)
}

#[track_caller]
fn error(comparison: &Comparison) -> String {
    let error = compare(comparison).expect_err("this must not work");
    assert_gone(comparison);
    error.to_string()
}

/// The longest that a test waits for what it expects.
const PATIENCE: Duration = Duration::from_mins(1);

#[track_caller]
fn assert_gone(comparison: &Comparison) {
    for contender in &comparison.contenders {
        let port = contender.target.port();
        let begin = Instant::now();
        // A killed process takes a moment to end on a loaded machine.
        while TcpStream::connect(("127.0.0.1", port)).is_ok() {
            assert!(
                begin.elapsed() < PATIENCE,
                "{} still listens",
                contender.name
            );
            thread::park_timeout(Duration::from_millis(10));
        }
    }
}

#[test]
fn servers_are_compared_in_turn_and_ended() {
    let comparison = comparison(vec![contender("a", "hello"), contender("b", "hello")]);
    let mut turns = Vec::new();
    let mut note = |step: &Step<'_>| match step {
        Step::Begins(turn) => turns.push(format!("{} {}", turn.round, turn.name)),
        Step::Ended(turn, sample) => assert_eq!(turn.round, sample.round),
        Step::Progress(..) => {}
    };
    let outcome = run_with(&comparison, &Stop::default(), &mut note, &mut load).expect("compared");
    assert_gone(&comparison);
    let expected = ["1 a", "1 b", "1 a (again)", "2 a (again)", "2 b", "2 a"];
    assert_eq!(turns, expected);
    assert_eq!(outcome.rounds(), 2);
    for sample in outcome.series.iter().flat_map(|series| &series.samples) {
        assert_eq!(sample.responses, 20);
        // The server is a child of the shell that was started.
        assert!(sample.rss_mib.is_some_and(|size| size > 0.5), "{sample:?}");
        assert!(sample.cpu_us.is_some_and(|time| time > 1.0), "{sample:?}");
    }
    let mut text = Vec::new();
    write_text(&mut text, &outcome).expect("memory");
    let text = String::from_utf8(text).expect("text");
    for part in [
        "a, b: 2 of 2 rounds",
        "the noise",
        "b beside a",
        "too few rounds",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let json = serde_json::to_value(outcome.summary()).expect("numbers and texts");
    assert_eq!(json["series"][2]["is_control"], true);
    assert!(json["series"][1]["metrics"]["p50"]["ratio"]["median"].is_number());
    let plots = outcome.into_plots();
    let names: Vec<_> = plots
        .iter()
        .map(|(name, streams)| (name.as_str(), streams.len()))
        .collect();
    assert_eq!(names, [("a", 2), ("b", 2)]);
    assert!(plots[0].1[0].first.is_none());
}

#[test]
fn another_response_is_reported() {
    let mut comparison = comparison(vec![contender("a", "hello"), contender("b", "help")]);
    let text = error(&comparison);
    assert_eq!(
        text,
        "the first responses of a and b differ: the bodies of 5 and 4 bytes differ at byte 3: \
        \"hello\" and \"help\""
    );
    comparison.check = Check::Nothing;
    let outcome = compare(&comparison).expect("allowed");
    assert!(outcome.summary().remarks.contains(&text));
}

#[test]
fn what_a_failing_server_says_is_shown() {
    let mut bad = contender("bad", "");
    bad.command = vec![
        "sh".into(),
        "-c".into(),
        "echo one; echo two >&2; exit 3".into(),
    ];
    let comparison = comparison(vec![contender("a", "hello"), bad]);
    let text = error(&comparison);
    assert_eq!(
        text,
        "bad: the server ended with exit status: 3 before it accepted connections; its output \
        ends with:\none\ntwo"
    );
}

#[test]
fn a_command_that_is_not_there_is_reported() {
    let mut missing = contender("missing", "");
    missing.command = vec!["/nonexistent/server".into()];
    let text = error(&comparison(vec![missing]));
    assert!(
        text.starts_with("missing: cannot start \"/nonexistent/server\": No such file"),
        "{text}"
    );
}

#[test]
fn a_server_that_never_listens_is_given_up() {
    let mut mute = contender("mute", "");
    mute.command = vec!["sleep".into(), "600".into()];
    let mut comparison = comparison(vec![mute]);
    comparison.start_timeout = Duration::from_millis(50);
    let text = error(&comparison);
    assert!(text.contains("after 50ms; it printed nothing"), "{text}");
}

#[test]
fn a_server_that_listens_already_is_not_measured() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut late = contender("late", "");
    late.target = target(listener.local_addr().expect("bound").port());
    let text = compare(&comparison(vec![late]))
        .expect_err("occupied")
        .to_string();
    assert!(text.contains("before this server was started"), "{text}");
}

#[test]
fn a_server_is_ended_when_its_run_cannot_begin_or_panics() {
    let comparison = comparison(vec![contender("a", "hello")]);
    let mut refuse = |_: &Plan, _, _: &Stop, _: &mut dyn FnMut(&Progress<'_>)| {
        Err(RunError::Plan("no such plan".into()))
    };
    let result = run_with(&comparison, &Stop::default(), &mut |_| (), &mut refuse);
    assert_eq!(result.expect_err("refused").to_string(), "a: no such plan");
    assert_gone(&comparison);
    let panicking = std::panic::AssertUnwindSafe(|| {
        let mut panics =
            |_: &Plan, _, _: &Stop, _: &mut dyn FnMut(&Progress<'_>)| panic!("on purpose");
        run_with(&comparison, &Stop::default(), &mut |_| (), &mut panics).map(drop)
    });
    assert!(std::panic::catch_unwind(panicking).is_err());
    assert_gone(&comparison);
}

#[test]
fn a_server_that_ignores_the_request_to_end_is_killed() {
    let mut stubborn = contender("stubborn", "hello");
    stubborn.command[2].insert_str(0, "trap '' TERM; ");
    let mut comparison = comparison(vec![stubborn]);
    comparison.end_timeout = Duration::from_millis(50);
    comparison.rounds = 1;
    compare(&comparison).expect("compared");
    assert_gone(&comparison);
}

#[test]
fn a_server_that_dies_under_load_is_reported() {
    let comparison = comparison(vec![contender("a", "hello")]);
    let mut kill = |plan: &Plan,
                    server: Option<Processes>,
                    stop: &Stop,
                    progress: &mut dyn FnMut(&Progress<'_>)| {
        let pids: Vec<u32> = server.iter().flat_map(Processes::pids).collect();
        assert!(pids.is_empty(), "no sample was taken yet");
        let measured = load(plan, server.clone(), stop, progress);
        if let Some(mut server) = server {
            server.sample();
            for pid in server
                .pids()
                .filter_map(|pid| Pid::from_raw(pid.cast_signed()))
            {
                rustix::process::kill_process(pid, rustix::process::Signal::KILL)
                    .expect("it is ours");
                // Its end takes a moment; it stays to be waited for. A grandchild is not counted.
                let until_ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                let _ = rustix::process::waitid(WaitId::Pid(pid), until_ended);
            }
            server.sample();
        }
        measured
    };
    let result = run_with(&comparison, &Stop::default(), &mut |_| (), &mut kill);
    let text = result.expect_err("it was killed").to_string();
    assert!(
        text.contains("signal: 9 (SIGKILL) while it was under load"),
        "{text}"
    );
}

#[test]
fn an_interruption_keeps_complete_rounds() {
    let mut comparison = comparison(vec![contender("a", "hello")]);
    comparison.rounds = 9;
    let stop = Stop::default();
    let mut halt = |step: &Step<'_>| {
        if matches!(step, Step::Ended(turn, _) if turn.round == 2) {
            stop.stop();
        }
    };
    let outcome = run_with(&comparison, &stop, &mut halt, &mut load).expect("a round is complete");
    assert_gone(&comparison);
    assert_eq!(outcome.rounds(), 1);
    assert!(outcome.summary().remarks[0].contains("interrupted"));
    let result = run_with(&comparison, &stop, &mut |_| (), &mut load);
    assert!(matches!(result, Err(CompareError::Interrupted)));
}

#[test]
fn server_and_load_are_kept_apart() {
    let comparison = comparison(vec![contender("a", "hello")]);
    let before = Cores::available().expect("some");
    let seen = RefCell::new(Vec::new());
    let mut look = |plan: &Plan,
                    server: Option<Processes>,
                    stop: &Stop,
                    progress: &mut dyn FnMut(&Progress<'_>)| {
        if let Some(mut server) = server.clone() {
            server.sample();
            let pid = server
                .pids()
                .next()
                .and_then(|pid| Pid::from_raw(pid.cast_signed()));
            let theirs = sched_getaffinity(pid).expect("it runs");
            let ours = sched_getaffinity(None).expect("we run");
            seen.borrow_mut().push((list(&theirs), list(&ours)));
        }
        load(plan, server, stop, progress)
    };
    let outcome =
        run_with(&comparison, &Stop::default(), &mut |_| (), &mut look).expect("compared");
    assert_eq!(Cores::available().expect("some"), before);
    let any = before.to_string();
    let told = |cores: Option<Cores>| cores.map_or_else(|| any.clone(), |cores| cores.to_string());
    let expected = (told(outcome.server_cores), told(outcome.load_cores));
    assert!(
        seen.borrow().iter().all(|pair| *pair == expected),
        "{seen:?}"
    );
    assert_eq!(seen.borrow().len(), 4);
}

fn list(set: &CpuSet) -> String {
    let cores = (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core));
    cores
        .map(|core| core.to_string())
        .collect::<Vec<_>>()
        .join(",")
}
