//! Latency beside service time, by kind of response.

use super::section::Section;
use crate::record::{Tally, Times};
use crate::report::quantity::milliseconds;
use crate::run::StreamMeasurement;

const QUANTILES: [(&str, f64); 5] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
];

pub(super) fn section(stream: &StreamMeasurement) -> Option<Section> {
    let rows = rows(&stream.tally);
    if rows.is_empty() {
        return None;
    }
    let names = QUANTILES.map(|(name, _)| format!("{name:>11}")).concat();
    let heading = format!("{:<20}{names}{:>11}", "", "max");
    let lines = rows.iter().map(|(label, times)| line(label, times));
    let lines = std::iter::once(heading).chain(lines).collect();
    let since = if stream.plan.is_open_loop() {
        "the intended time"
    } else {
        "the begin of connecting or sending"
    };
    Section::new(
        format!("Latency from {since}, service time from the sending (ms)"),
        lines,
    )
}

/// Returns a row for each kind of response; the two kinds stand apart only where both occurred.
fn rows(tally: &Tally) -> Vec<(&'static str, Times)> {
    let mut rows = vec![
        ("Latency", tally.latency()),
        ("Service time", tally.processing.clone()),
    ];
    if !tally.good.is_empty() && !tally.bad.is_empty() {
        rows.push(("Status below 400", tally.good.clone()));
        rows.push(("Status 400 and above", tally.bad.clone()));
    }
    if tally.responses() > 0 {
        rows.push(("Timed out", tally.timed_out.clone()));
    }
    rows.retain(|(_, times)| !times.is_empty());
    rows
}

fn line(label: &str, times: &Times) -> String {
    let quantile = |(_, part)| format!("{:>11.3}", milliseconds(times.quantile(part)));
    let quantiles = QUANTILES.map(quantile).concat();
    format!("{label:<20}{quantiles}{:>11.3}", milliseconds(times.max()))
}
