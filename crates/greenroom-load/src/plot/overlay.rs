//! The styles of several series in one picture: colour and mark tell the series, the dash its
//! percentile.

use super::Series;
use super::legend::Entry;
use super::look::{Dash, INK, look};
use super::series::Latency;

/// The approximate number of marks on a line.
const MARKS: usize = 10;

/// A percentile: its name, its dash, and its time in a latency.
type Percentile = (&'static str, Dash, fn(&Latency) -> f64);

/// The percentiles that are shown of each series.
pub(super) const PERCENTILES: [Percentile; 2] = [
    ("p50", Dash::Solid, |latency| latency.p50),
    ("p99", Dash::Long, |latency| latency.p99),
];

/// Returns the entries of the series, and in a row of their own the percentiles.
pub(super) fn legend(series: &[Series]) -> Vec<Vec<Entry>> {
    let key = |(name, dash, _): Percentile| Entry {
        colour: INK.light,
        dash: Some(dash),
        ..Entry::heading(name)
    };
    vec![names(series), PERCENTILES.map(key).into()]
}

/// Returns the entries of the series alone.
pub(super) fn names(series: &[Series]) -> Vec<Entry> {
    let entry = |(number, series): (usize, &Series)| Entry {
        colour: look(number).colour,
        dash: Some(Dash::Solid),
        shape: Some(look(number).shape),
        ..Entry::heading(&series.name)
    };
    series.iter().enumerate().map(entry).collect()
}

/// Returns the points of a line that are marked; those of different series stand at different
/// places.
pub(super) fn sparse(points: &[(f64, f64)], number: usize) -> Vec<(f64, f64)> {
    let step = (points.len() / MARKS).max(1);
    let first = number * step / 4 % step;
    points.iter().skip(first).step_by(step).copied().collect()
}
