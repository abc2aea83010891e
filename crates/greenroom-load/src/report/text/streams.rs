//! The streams beside the first.

use super::outcome::failure_lines;
use super::section::Section;
use crate::report::quantity::milliseconds;
use crate::run::{Measurement, StreamMeasurement};

const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// Returns a line for each, with its own statistics.
pub(super) fn section(measurement: &Measurement) -> Option<Section> {
    let others = measurement.streams.get(1..).unwrap_or_default();
    if others.is_empty() {
        return None;
    }
    let heading = format!(
        "{:>10}{:>12}{:>10}{:>11}{:>11}{:>11}{:>11}{:>11}  name",
        "responses", "per second", "failures", "p50", "p90", "p99", "p99.9", "max"
    );
    let lines = others.iter().map(line);
    let lines = std::iter::once(heading).chain(lines).collect();
    Section::new("Further streams (latency in ms)", lines)
}

/// Returns the failures of their requests, stream by stream.
pub(super) fn failures(measurement: &Measurement) -> Option<Section> {
    let mut lines = Vec::new();
    for stream in measurement.streams.iter().skip(1) {
        let of_stream = failure_lines(&stream.tally);
        if !of_stream.is_empty() {
            lines.push(stream.plan.name.clone());
            lines.extend(of_stream);
        }
    }
    Section::new("Failures of further streams", lines)
}

fn line(stream: &StreamMeasurement) -> String {
    let latency = stream.tally.latency();
    let quantile = |part| format!("{:>11.3}", milliseconds(latency.quantile(part)));
    format!(
        "{:>10}{:>12.2}{:>10}{}{:>11.3}  {}",
        stream.tally.responses(),
        stream.requests_per_second(),
        stream.failed(),
        QUANTILES.map(quantile).concat(),
        milliseconds(latency.max()),
        stream.plan.name,
    )
}
