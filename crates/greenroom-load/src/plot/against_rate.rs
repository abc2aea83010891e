//! Response time against the request rate.

use super::axis::Axis;
use super::legend::Legend;
use super::look::{Dash, Look, look};
use super::panel::{Curve, Panel};
use super::series::{AtRate, Latency};
use super::{Series, overlay};

/// The ratio from which two rates differ: 1 %.
const RATIO_MIN: f64 = 1.01;

/// Returns true if there is more than one rate to show.
pub(super) fn applies(series: &[Series]) -> bool {
    let rates = || series.iter().flat_map(|one| &one.rates).map(|at| at.rate);
    let lowest = rates().fold(f64::INFINITY, f64::min);
    rates().fold(0.0, f64::max) > lowest * RATIO_MIN
}

pub(super) fn panels(series: &[Series]) -> Vec<Panel> {
    let all = || series.iter().flat_map(|one| &one.rates);
    let times = all().flat_map(|at| [at.latency.p50, at.latency.p99]);
    vec![Panel {
        title: "Response time against request rate".into(),
        x: Axis::tight("request rate asked for (1/s)", all().map(|at| at.rate)),
        y: Axis::fitting("response time (ms)", times),
        curves: series.iter().enumerate().flat_map(curves).collect(),
        legend: Legend::new(overlay::legend(series)),
    }]
}

fn curves((number, series): (usize, &Series)) -> impl Iterator<Item = Curve> + '_ {
    overlay::PERCENTILES
        .into_iter()
        .map(move |percentile| curve(series, look(number), percentile, number))
}

fn curve(
    series: &Series,
    look: Look,
    (name, dash, time): (&str, Dash, fn(&Latency) -> f64),
    number: usize,
) -> Curve {
    let point = |at: &AtRate| (at.rate, time(&at.latency));
    let points: Vec<_> = series.rates.iter().map(point).collect();
    Curve {
        title: format!("{} {name}", series.name),
        marks: overlay::sparse(&points, number),
        stretches: vec![points],
        colour: look.colour,
        dash: Some(dash),
        shape: look.shape,
    }
}
