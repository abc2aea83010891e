//! HTTP/1.1 over TCP, TLS and Unix sockets: a loop of its own around epoll, without a runtime.
//!
//! One thread owns its connections. Each is registered once, edge-triggered (and again where a
//! request does not fit into the socket), and a request is written where the response before it was
//! read, so a request costs a `recv`, a `send` and a share of an `epoll_pwait2`.

mod chunked;
mod closed;
mod connection;
mod core;
mod malformed;
mod open;
mod requests;
mod response;
mod socket;
mod transport;

use std::io;
use std::time::Duration;

use self::closed::Closed;
use self::core::{Core, Happened};
use self::open::Open;
use crate::record::Recorder;
use crate::run::{Ending, Endpoint, Share};

/// The longest pause between two checks of the time-outs and of the stop flag.
const SWEEP_MAX: Duration = Duration::from_millis(100);
const SWEEP_MIN: Duration = Duration::from_millis(5);

/// Makes one thread's share of a stream.
///
/// # Errors
/// If the kernel denies an epoll instance, or a wait on it.
pub(crate) fn work(
    share: &Share,
    endpoints: &[Endpoint],
    recorder: Recorder,
) -> io::Result<Ending> {
    let core = Core::new(share, endpoints, recorder)?;
    let pace = match share.pacer() {
        None => Pace::Closed(Closed::new(share)),
        Some(pacer) => {
            let open = Open::new(pacer, share.connections, core.routes.origins());
            Pace::Open(Box::new(open))
        }
    };
    Worker { core, pace }.run(share)
}

struct Worker {
    core: Core,
    pace: Pace,
}

enum Pace {
    Closed(Closed),
    Open(Box<Open>),
}

impl Worker {
    fn run(mut self, share: &Share) -> io::Result<Ending> {
        let sweep_ns = sweep_interval(share.plan.timeout);
        let mut next_sweep = sweep_ns;
        if let Pace::Closed(closed) = &mut self.pace {
            closed.begin(&mut self.core);
        }
        let mut is_stopped = false;
        while !is_stopped && !self.is_over() {
            let until = self.waits_until(next_sweep, share.plan.spin);
            let events = self.core.wait(until)?;
            self.events(events);
            let now = self.core.clock.now();
            if now >= next_sweep {
                next_sweep = now + sweep_ns;
                self.collect(Core::sweep);
                self.send_opened();
                is_stopped = share.stop.is_stopped() || self.core.is_hopeless();
            }
            if now >= self.core.recorder.flush_due() {
                self.flush(now);
            }
        }
        Ok(self.end(is_stopped && !share.stop.is_stopped()))
    }

    fn events(&mut self, events: usize) {
        for index in 0..events {
            let happened = self.core.event(index);
            self.happened(happened);
            // A long row of responses must not make a request late.
            self.due();
        }
        self.collect(Core::read_on);
        self.due();
        self.send_opened();
    }

    fn is_over(&self) -> bool {
        match &self.pace {
            Pace::Closed(closed) => closed.is_over(&self.core),
            Pace::Open(open) => open.is_over(&self.core),
        }
    }

    /// Returns the time until which to wait for events; 0 if there is something to do without any.
    fn waits_until(&self, next_sweep: u64, spin: bool) -> u64 {
        if spin || self.core.has_unread() {
            return 0;
        }
        let due = match &self.pace {
            Pace::Closed(closed) => closed.next_due(),
            Pace::Open(open) => open.pacer.wakes_at(),
        };
        next_sweep
            .min(self.core.recorder.flush_due())
            .min(due.unwrap_or(u64::MAX))
    }

    fn happened(&mut self, happened: Happened) {
        match &mut self.pace {
            Pace::Closed(closed) => closed.happened(&mut self.core, happened),
            Pace::Open(open) => open.happened(&mut self.core, happened),
        }
    }

    fn due(&mut self) {
        match &mut self.pace {
            Pace::Closed(closed) => closed.due(&mut self.core),
            Pace::Open(open) => open.due(&mut self.core, 0),
        }
    }

    fn collect(&mut self, look: fn(&mut Core, &mut Vec<Happened>)) {
        let mut found = Vec::new();
        look(&mut self.core, &mut found);
        for happened in found {
            self.happened(happened);
        }
    }

    fn send_opened(&mut self) {
        if let Pace::Closed(closed) = &mut self.pace {
            closed.send_opened(&mut self.core);
        }
    }

    fn flush(&mut self, now: u64) {
        self.count_due(now);
        self.core.recorder.flush(now);
    }

    fn count_due(&mut self, now: u64) {
        if let Pace::Open(open) = &mut self.pace {
            self.core.recorder.tally().counts.due += open.pacer.count_due(now);
        }
    }

    fn end(mut self, gave_up: bool) -> Ending {
        let now = self.core.clock.now();
        self.count_due(now);
        let (waiting, in_flight_most) = match &self.pace {
            Pace::Closed(closed) => (closed.waiting(), 0),
            Pace::Open(open) => (open.pacer.waiting(now), open.in_flight_most),
        };
        let ending = Ending {
            last_ns: self.core.last_ns(),
            in_flight_most,
            unfinished: self.core.in_flight() as u64 + waiting,
            was_cut: !self.is_over(),
            gave_up,
        };
        self.core.recorder.finish(now);
        ending
    }
}

fn sweep_interval(timeout: Duration) -> u64 {
    let interval = (timeout / 20).clamp(SWEEP_MIN, SWEEP_MAX);
    u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX)
}
