//! The latency that is told is the one that users would have had, also when the server stands still.

#[path = "fixture/stall.rs"]
mod stall;

use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use greenroom_load::plan::{Pace, Plan, Schedule, StreamPlan};
use greenroom_load::run::{Stop, run};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How far from the truth a time may be told.
const TOLERANCE: f64 = 0.02;

#[test]
fn a_stall_is_seen_as_long_as_it_is() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, raised).expect("the hard limit may always be used");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    thread::spawn(move || stall::serve(listener));
    let target = format!("http://{address}/").parse().expect("a URL");
    let mut stream = StreamPlan::new(target);
    stream.keep_alive = true;
    stream.connections = 300;
    // More per second, and the time that the server takes to catch up after a stall would be seen too.
    let schedule = Schedule::constant(200.0, 4 * stall::PERIOD);
    stream.pace = Pace::Open(schedule.expect("a schedule"));
    let plan = Plan {
        streams: vec![stream],
        interval: Duration::from_secs(1),
    };
    let measured = run(&plan, None, &Stop::default(), &mut |_| {}).expect("the run begins");
    let measured = &measured.streams[0];
    assert_eq!(measured.tally.answers(), 4000);
    assert!(!measured.missed_its_rate());
    // A fifth of the requests falls into a stall, and waits for the rest of its second.
    let latency = measured.tally.latency();
    for (quantile, truth) in [(0.9, 0.5), (0.99, 0.95), (0.999, 0.995), (1.0, 1.0)] {
        let seen = latency.quantile(quantile).as_secs_f64();
        assert!(
            (seen / truth - 1.0).abs() <= TOLERANCE,
            "{quantile}: {seen} s instead of {truth} s"
        );
    }
}
