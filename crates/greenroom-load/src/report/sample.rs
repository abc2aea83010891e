//! Measurements for the tests of reports, filled as by a run.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::plan::{Pace, Schedule, StreamPlan};
use crate::record::{
    ByRate, FailureKind, FirstResponse, RequestRecord, ResponseRecord, Tally, Timeline,
};
use crate::run::{Measurement, StreamMeasurement};
use crate::verdict::ThreadUsage;

/// Sat Nov 21 13:13:42 2026, UTC.
pub(super) const STARTED_SECONDS: u64 = 1_795_266_822;

/// Returns a stream without any request.
pub(super) fn stream(url: &str) -> StreamMeasurement {
    StreamMeasurement {
        plan: StreamPlan::new(url.parse().expect("a valid URL")),
        elapsed: Duration::from_secs(1),
        tally: Tally::default(),
        timeline: Timeline::new(Duration::from_secs(1)),
        by_rate: ByRate::default(),
        first: None,
        records: Vec::new(),
        in_flight_most: 0,
        unfinished: 0,
    }
}

/// Returns a stream of an open loop at a constant rate.
pub(super) fn open_loop(url: &str, rate: f64, seconds: u64) -> StreamMeasurement {
    let mut stream = stream(url);
    let duration = Duration::from_secs(seconds);
    stream.plan.pace = Pace::Open(Schedule::constant(rate, duration).expect("a valid schedule"));
    stream.elapsed = duration;
    stream
}

/// Returns a run of these streams.
pub(super) fn measurement(streams: Vec<StreamMeasurement>) -> Measurement {
    Measurement {
        started: started(),
        elapsed: streams[0].elapsed,
        interrupted: false,
        gave_up: false,
        streams,
        generator: vec![ThreadUsage {
            stream: 0,
            user: Duration::from_millis(2),
            system: Duration::from_millis(6),
            elapsed: Duration::from_secs(1),
            ..ThreadUsage::default()
        }],
        server: None,
    }
}

pub(super) fn started() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(STARTED_SECONDS)
}

/// Returns a first response with this head.
pub(super) fn first(head: &str, body_bytes: u64) -> FirstResponse {
    FirstResponse {
        head: head.as_bytes().to_vec(),
        body_bytes,
        ..FirstResponse::default()
    }
}

/// Adds a response on a connection of its own that took no time to connect; times in milliseconds
/// from its begin.
pub(super) fn response(stream: &mut StreamMeasurement, status: u16, waiting: u64, total: u64) {
    let response = ResponseRecord {
        status,
        intended: 0,
        sent: 0,
        first_byte: waiting * 1_000_000,
        done: total * 1_000_000,
        connect: Some(0),
        body_bytes: 0,
    };
    stream.tally.counts.sent += 1;
    stream.tally.counts.connections += 1;
    stream.tally.connect.record(0);
    stream.tally.responded(&response);
}

/// Adds a request that failed after so many milliseconds.
pub(super) fn failure(stream: &mut StreamMeasurement, kind: FailureKind, lasted: u64) {
    stream.tally.counts.sent += 1;
    let detail = || format!("what the first {kind} said");
    stream.tally.failed(kind, lasted * 1_000_000, detail);
}

/// Adds the whole tally of a stream as one point of its time line.
pub(super) fn point(stream: &mut StreamMeasurement, begin: Duration, length: Duration) {
    stream.timeline.push(begin, length, &stream.tally);
}

/// Returns the times of a single request in milliseconds.
pub(super) fn record(intended: u64, connect: u64, total: u64, waiting: u64) -> RequestRecord {
    RequestRecord {
        intended: intended * 1_000_000,
        connect: connect * 1_000_000,
        processing: (total - connect) * 1_000_000,
        total: total * 1_000_000,
        waiting: waiting * 1_000_000,
    }
}

/// Returns the output of a writer as text.
pub(super) fn text_of(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut bytes = Vec::new();
    write(&mut bytes).expect("memory takes everything");
    String::from_utf8(bytes).expect("reports are text")
}
