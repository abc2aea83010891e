//! The verdict.

mod evidence;
#[cfg(test)]
mod tests;

use serde::Serialize;

use self::evidence::Evidence;
use crate::run::Measurement;

/// The side that kept the run from going faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// This program: the server is better than reported.
    Generator,
    /// The server.
    Server,
    /// Both had no time left: a faster server would not have been seen.
    Both,
    /// Neither side: both had time left.
    Nobody,
    /// The server's load is not known.
    Unknown,
}

/// The side that was the limit, with the evidence and a remedy.
///
/// The generator was the limit if
///
/// - one of its threads ran more than 90 % of the time (a stream that polls without pause is
///   exempt: its thread always does), or
/// - open loop: more than 0.1 % of the requests, and at least 10, were sent over 1 ms late while a
///   connection was free, or
/// - open loop: its lag at p50 (of 1,000 requests or more: or p99) is above 10 % of the latency at
///   the same percentile, and above 20 us.
///
/// The server was the limit if
///
/// - it used 90 % of the cores that it may use, or one of its threads ran 90 % of the time, or
/// - open loop, and the generator was not the limit: more than 0.1 % of the requests found no free
///   connection, were not sent at all, or timed out; or the last response came later after the
///   schedule's end than a tenth of its length, and five times the latency at p10.
///
/// Worked numbers for the lag, which is a part of the latency: with p50 of 40 us of lag in 160 us
/// of latency, a quarter of the reported latency is the generator's own, so it is the generator; 40
/// us in 2 ms are 2 %, so it is not; 15 us in 100 us are below the precision of a sleeping thread,
/// so it is not. A server that stalls for a second in every five has a p99 of 950 ms, and a lag of
/// 0.3 ms there says nothing.
///
/// A thread's share of the time and the server's cores are means over the run: of a ramp that
/// reaches the limit at its end, the requests say more than the cores do.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// The side that was the limit.
    pub limit: Limit,
    /// The verdict as a sentence, then the evidence and a remedy.
    pub sentences: Vec<String>,
}

impl Verdict {
    /// Judges a run.
    #[must_use]
    pub fn of(measurement: &Measurement) -> Self {
        let evidence = Evidence::of(measurement);
        let limit = limit(measurement, &evidence);
        let mut sentences = vec![conclusion(limit).to_owned()];
        sentences.extend(evidence.generator);
        sentences.extend(evidence.server);
        sentences.extend(evidence.competition);
        sentences.extend(evidence.remarks);
        sentences.extend(advice(measurement, limit));
        Self { limit, sentences }
    }
}

fn limit(measurement: &Measurement, evidence: &Evidence) -> Limit {
    let open = measurement
        .streams
        .iter()
        .all(|stream| stream.plan.is_open_loop());
    match (evidence.generator.is_empty(), evidence.server.is_empty()) {
        _ if nothing_responded(measurement) => Limit::Unknown,
        (false, false) => Limit::Both,
        (false, true) => Limit::Generator,
        (true, false) => Limit::Server,
        // Neither side limits a schedule that was kept, at any load of the server.
        (true, true) if measurement.server.is_some() || open => Limit::Nobody,
        (true, true) => Limit::Unknown,
    }
}

fn nothing_responded(measurement: &Measurement) -> bool {
    let mut streams = measurement.streams.iter();
    // In an open loop, requests without a response in time show that the server fell behind.
    streams.all(|stream| {
        let fell_behind = stream.plan.is_open_loop() && !stream.tally.timed_out.is_empty();
        stream.tally.responses() == 0 && !fell_behind
    })
}

fn conclusion(limit: Limit) -> &'static str {
    match limit {
        Limit::Generator => {
            "The generator was the limit: the server may be better than reported here."
        }
        Limit::Server => "The server was the limit.",
        Limit::Both => {
            "The generator and the server were both at their limit: the server may be better than \
            reported here."
        }
        Limit::Nobody => "Neither the generator nor the server was the limit.",
        Limit::Unknown => "Who was the limit is not known.",
    }
}

fn advice(measurement: &Measurement, limit: Limit) -> Option<String> {
    let closed = measurement
        .streams
        .iter()
        .any(|stream| !stream.plan.is_open_loop());
    let text = match limit {
        _ if nothing_responded(measurement) => "No request got a response at all.",
        Limit::Nobody if closed => {
            "More connections (-c) would ask more of the server, unless it waits for something \
            else: a lock, a disk, another service."
        }
        Limit::Unknown => {
            "The server runs on another machine, or its process may not be seen: for one on this \
            machine give its process (--server-pid)."
        }
        Limit::Nobody | Limit::Generator | Limit::Server | Limit::Both => return None,
    };
    Some(text.to_owned())
}
