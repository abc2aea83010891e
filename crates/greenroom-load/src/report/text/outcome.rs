//! Requests with another outcome than a response of status 200.

use super::section::Section;
use crate::record::Tally;
use crate::run::{Measurement, StreamMeasurement};

pub(super) fn ended_early(measurement: &Measurement) -> Option<Section> {
    let seconds = measurement.elapsed.as_secs_f64();
    let unfinished: u64 = measurement
        .streams
        .iter()
        .map(|stream| stream.unfinished)
        .sum();
    let heading = if measurement.gave_up {
        let why = measurement.why_it_gave_up();
        format!("Gave up after {seconds:.3} s: {why}")
    } else if measurement.interrupted {
        format!("Interrupted after {seconds:.3} s")
    } else {
        return None;
    };
    let line = format!("Requests under way that were not waited for: {unfinished}");
    Section::new(heading, vec![line])
}

/// Returns the statuses, when there are others than 200.
pub(super) fn statuses(stream: &StreamMeasurement) -> Option<Section> {
    let statuses: Vec<_> = stream.tally.statuses().collect();
    if statuses.iter().all(|(status, _)| *status == 200) {
        return None;
    }
    let line = |(status, count)| format!("{status}  {count:>12}");
    Section::new(
        "Responses by status",
        statuses.into_iter().map(line).collect(),
    )
}

pub(super) fn failures(stream: &StreamMeasurement) -> Option<Section> {
    Section::new("Failures by kind", failure_lines(&stream.tally))
}

/// Returns two lines for each kind: its number with its meaning, and the detail of the first
/// failure.
pub(super) fn failure_lines(tally: &Tally) -> Vec<String> {
    let mut lines = Vec::new();
    for (kind, count) in tally.failures.iter() {
        lines.push(format!(
            "{:<16}{count:>10}  {}",
            kind.name(),
            kind.explanation()
        ));
        let detail = tally.failures.detail(kind).unwrap_or_default();
        if !detail.is_empty() {
            lines.push(format!("{:<28}first: {}", "", detail.trim()));
        }
    }
    if tally.counts.unasked > 0 {
        lines.push(format!(
            "{:<16}{:>10}  connections closed, because bytes came that no request had asked for; \
            is a response longer than its Content-Length?",
            "unasked", tally.counts.unasked
        ));
    }
    lines
}
