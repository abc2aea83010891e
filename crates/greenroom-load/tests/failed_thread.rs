//! A thread that cannot make its load ends the run.

use std::fs::File;
use std::iter;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use greenroom_load::plan::{Pace, Plan, Schedule, StreamPlan};
use greenroom_load::run::{RunError, Stop, run};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Far longer than it takes a thread to fail.
const DEADLINE: Duration = Duration::from_mins(1);
/// Far longer than that.
const SCHEDULE: Duration = Duration::from_hours(1);

/// There are descriptors for the event loops of some threads, and none for those of others.
#[test]
fn a_thread_that_fails_stops_those_that_do_not() {
    let limit = getrlimit(Resource::Nofile);
    let lowered = Rlimit {
        current: Some(64),
        ..limit
    };
    setrlimit(Resource::Nofile, lowered).expect("a lower limit may always be set");
    let mut held: Vec<_> = iter::from_fn(|| File::open("/dev/null").ok()).collect();
    held.truncate(held.len() - 4);
    let mut stream = StreamPlan::new("http://127.0.0.1:1/".parse().expect("a URL"));
    (stream.threads, stream.connections) = (8, 8);
    stream.pace = Pace::Open(Schedule::constant(0.001, SCHEDULE).expect("a schedule"));
    let plan = Plan {
        streams: vec![stream],
        interval: Duration::from_secs(1),
    };
    let (ended, end) = mpsc::channel();
    thread::spawn(move || {
        let outcome = run(&plan, None, &Stop::default(), &mut |_| {});
        // If nobody waits any more, the test has failed.
        let _ = ended.send(outcome);
    });
    let outcome = end.recv_timeout(DEADLINE).expect("the run ends");
    let error = outcome.expect_err("there are too few descriptors");
    assert!(matches!(error, RunError::System { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains("a thread that makes load failed"),
        "{error}"
    );
}
