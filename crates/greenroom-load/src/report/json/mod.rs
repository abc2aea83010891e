//! The whole measurement as one JSON object for programs.
//!
//! The object's `format` is 1. It changes when a field changes its meaning or goes; fields may be
//! added without that, so readers must ignore fields that they do not know. Fields whose names end
//! in `_ns` are whole nanoseconds, in `_seconds` seconds with a fraction, in `_bytes` bytes, in
//! `_per_second` events per second, in `_share` parts from 0 to 1.
//!
//! ```text
//! format                1
//! version               of this program
//! started_unix_seconds  when the run began
//! elapsed_seconds       until its last response, or failure before the end of sending
//! interrupted, gave_up  true if it ended early
//! streams[]             in the order of the command line
//!   name, url, elapsed_seconds
//!   plan                what was asked for: method, protocol, loop, connections, keep_alive, …;
//!                       phases[] of an open loop
//!   requests            due, sent, answered, failed (without a response), unfinished,
//!                       late_for_connection, late_by_generator, other_length, unasked,
//!                       missed_share
//!   connections         established, reused
//!   bytes               sent, received, body
//!   answers_per_second
//!   statuses            {"200": count, …}
//!   failures            {"refused": {count, first, explanation}, …}, only kinds that occurred
//!   latency_ns          from the intended time, of responses and of requests that timed out
//!   good_latency_ns, bad_latency_ns, timed_out_ns
//!                       the same of responses below 400, of other responses, and of requests
//!                       that timed out
//!   service_ns, connect_ns, waiting_ns, generator_lag_ns
//!                       each: count, min, mean, standard_deviation, p50, p66, p75, p80, p90, p95,
//!                       p98, p99, p99.9, p99.99, max
//!   timeline[]          begin_seconds, length_seconds, due, sent, good, bad, failed,
//!                       asked_per_second, answered_per_second, latency_ns {p50, p90, p99, max},
//!                       whose values are null where no request of a latency ended
//! generator             threads, user_seconds, system_seconds, user_ns_per_request,
//!                       system_ns_per_request, busiest_share
//! server                null, or processes, threads_max, rss_max_bytes, user_seconds,
//!                       system_seconds, user_ns_per_request, system_ns_per_request
//! verdict               limit (generator, server, both, nobody or unknown), sentences
//! ```

mod stream;
#[cfg(test)]
mod tests;
mod times;

use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

use serde::Serialize;

use super::quantity::number;
use crate::run::Measurement;
use crate::verdict::{ServerUsage, ThreadUsage, Verdict};
use stream::Stream;

/// Version of the object.
const FORMAT: u32 = 1;

/// Writes the object and a line's end.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, measurement: &Measurement) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &Report::of(measurement))?;
    writeln!(out)
}

#[derive(Serialize)]
struct Report<'a> {
    format: u32,
    version: &'static str,
    started_unix_seconds: f64,
    elapsed_seconds: f64,
    interrupted: bool,
    gave_up: bool,
    streams: Vec<Stream<'a>>,
    generator: Generator,
    server: Option<Server>,
    verdict: Verdict,
}

#[derive(Serialize)]
struct Generator {
    threads: usize,
    #[serde(flatten)]
    cpu: Cpu,
    busiest_share: f64,
}

#[derive(Serialize)]
struct Server {
    processes: u32,
    threads_max: u32,
    rss_max_bytes: u64,
    #[serde(flatten)]
    cpu: Cpu,
}

#[derive(Serialize)]
struct Cpu {
    user_seconds: f64,
    system_seconds: f64,
    /// `None` when no request ended.
    user_ns_per_request: Option<f64>,
    system_ns_per_request: Option<f64>,
}

impl<'a> Report<'a> {
    fn of(measurement: &'a Measurement) -> Self {
        let streams = &measurement.streams;
        let ended = streams.iter().map(|stream| stream.tally.tried()).sum();
        let started = measurement.started.duration_since(UNIX_EPOCH);
        Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION"),
            started_unix_seconds: started.unwrap_or_default().as_secs_f64(),
            elapsed_seconds: measurement.elapsed.as_secs_f64(),
            interrupted: measurement.interrupted,
            gave_up: measurement.gave_up,
            streams: streams.iter().map(Stream::of).collect(),
            generator: Generator::of(&measurement.generator, ended),
            server: measurement
                .server
                .as_ref()
                .map(|usage| Server::of(usage, ended)),
            verdict: Verdict::of(measurement),
        }
    }
}

impl Generator {
    fn of(threads: &[ThreadUsage], ended: u64) -> Self {
        let user = threads.iter().map(|thread| thread.user).sum();
        let system = threads.iter().map(|thread| thread.system).sum();
        Self {
            threads: threads.len(),
            cpu: Cpu::of(user, system, ended),
            busiest_share: threads.iter().map(ThreadUsage::busy).fold(0.0, f64::max),
        }
    }
}

impl Server {
    fn of(usage: &ServerUsage, ended: u64) -> Self {
        Self {
            processes: usage.processes,
            threads_max: usage.threads_max,
            rss_max_bytes: usage.rss_bytes_max,
            cpu: Cpu::of(usage.user, usage.system, ended),
        }
    }
}

impl Cpu {
    fn of(user: Duration, system: Duration, ended: u64) -> Self {
        let each = |time: Duration| (ended > 0).then(|| time.as_secs_f64() * 1e9 / number(ended));
        Self {
            user_seconds: user.as_secs_f64(),
            system_seconds: system.as_secs_f64(),
            user_ns_per_request: each(user),
            system_ns_per_request: each(system),
        }
    }
}
