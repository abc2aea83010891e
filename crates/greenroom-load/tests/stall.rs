//! The reported latency is that of users, also when the server stands still.

#[path = "fixture/stall.rs"]
mod stall;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use greenroom_load::plan::{Pace, Plan, Schedule, StreamPlan};
use greenroom_load::run::{Stop, run};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The relative error that a reported time may have, besides the machine's own delay.
const TOLERANCE: f64 = 0.02;
/// Threads that a request waits for: two of the generator, the server's, and the witness's own
/// error.
const HOPS: u32 = 4;

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
    // At a higher rate the time that the server takes to catch up after a stall would be seen too.
    let schedule = Schedule::constant(200.0, 4 * stall::PERIOD);
    stream.pace = Pace::Open(schedule.expect("a schedule"));
    let plan = Plan {
        streams: vec![stream],
        interval: Duration::from_secs(1),
    };
    let witness = Witness::start(address);
    let measured = run(&plan, None, &Stop::default(), &mut |_| {}).expect("the run begins");
    let busy = witness.finish().as_secs_f64();
    let measured = &measured.streams[0];
    assert_eq!(measured.tally.responses(), 4000);
    // A fifth of the requests falls into a stall, and waits for the rest of its second.
    let latency = measured.tally.latency();
    for (quantile, truth) in [(0.9, 0.5), (0.99, 0.95), (0.999, 0.995), (1.0, 1.0)] {
        let seen = latency.quantile(quantile).as_secs_f64();
        let least = truth * (1.0 - TOLERANCE);
        let most = truth * (1.0 + TOLERANCE) + busy;
        assert!(
            (least..=most).contains(&seen),
            "{quantile}: {seen} s instead of {truth} s, and at most {busy} s for the machine"
        );
    }
}

/// A witness of the delay with which a loaded machine ends a stall: a client with one connection,
/// one of whose requests waits for all of each.
struct Witness {
    stop: Sender<()>,
    thread: JoinHandle<io::Result<Duration>>,
}

impl Witness {
    const INTERVAL: Duration = Duration::from_millis(1);

    fn start(address: SocketAddr) -> Self {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut stream = TcpStream::connect(address)?;
            let mut longest = Duration::ZERO;
            let mut response = [0; 256];
            while stopped.recv_timeout(Self::INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let begin = Instant::now();
                stream.write_all(b"GET / HTTP/1.1\r\nHost: witness\r\n\r\n")?;
                // The server writes it at once.
                if stream.read(&mut response)? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                longest = longest.max(begin.elapsed());
            }
            Ok(longest)
        });
        Self { stop, thread }
    }

    /// Returns the delay that a request may have on such a machine.
    fn finish(self) -> Duration {
        drop(self.stop);
        let longest = self.thread.join().expect("it does not panic");
        let longest = longest.expect("the server responds");
        longest.saturating_sub(stall::STALL) * HOPS
    }
}
