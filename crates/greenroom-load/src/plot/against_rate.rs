//! Response time, and the share that was served, against the request rate.

use super::axis::Axis;
use super::legend::Legend;
use super::look::{Dash, look};
use super::panel::{Curve, Panel};
use super::series::AtRate;
use super::{Series, overlay};

/// The ratio from which two rates differ: 1 %.
const RATIO_MIN: f64 = 1.01;
/// All requests, in per cent.
const WHOLE: f64 = 100.0;

/// Returns true if there is more than one rate to show.
pub(super) fn applies(series: &[Series]) -> bool {
    let rates = || series.iter().flat_map(|one| &one.rates).map(|at| at.rate);
    let lowest = rates().fold(f64::INFINITY, f64::min);
    rates().fold(0.0, f64::max) > lowest * RATIO_MIN
}

/// Returns the response times, and below them the share that was served if that was not all.
pub(super) fn panels(series: &[Series]) -> Vec<Panel> {
    let is_served = |at: &AtRate| at.served >= WHOLE;
    let mut panels = vec![latency(series)];
    if !series.iter().flat_map(|one| &one.rates).all(is_served) {
        panels.push(served(series));
    }
    panels
}

fn latency(series: &[Series]) -> Panel {
    let all = series.iter().flat_map(|one| &one.rates);
    let latencies = all.filter_map(|at| at.latency);
    let times = latencies.flat_map(|latency| [latency.p50, latency.p99]);
    Panel {
        title: "Response time against request rate".into(),
        x: asked(series),
        y: Axis::fitting("response time (ms)", times),
        curves: series.iter().enumerate().flat_map(curves).collect(),
        legend: Legend::new(overlay::legend(series)),
    }
}

fn served(series: &[Series]) -> Panel {
    let curve = |(number, one): (usize, &Series)| {
        let points = one.rates.iter().map(|at| (at.rate, at.served)).collect();
        curve((number, &one.name), Dash::Solid, vec![points])
    };
    Panel {
        title: "Requests served against request rate".into(),
        x: asked(series),
        y: Axis::linear("status below 400 (% of requests)", [WHOLE].into_iter()),
        curves: series.iter().enumerate().map(curve).collect(),
        legend: Legend::new(vec![overlay::names(series)]),
    }
}

fn asked(series: &[Series]) -> Axis {
    let rates = series.iter().flat_map(|one| &one.rates);
    Axis::tight("request rate asked for (1/s)", rates.map(|at| at.rate))
}

fn curves((number, series): (usize, &Series)) -> impl Iterator<Item = Curve> + '_ {
    overlay::PERCENTILES.into_iter().map(move |percentile| {
        let (name, dash, time) = percentile;
        let point = |at: &AtRate| Some((at.rate, time(&at.latency?)));
        let stretches = series.rates.split(|at| at.latency.is_none());
        let stretches = stretches.map(|stretch| stretch.iter().filter_map(point).collect());
        let title = format!("{} {name}", series.name);
        curve((number, &title), dash, stretches.collect())
    })
}

fn curve((number, title): (usize, &str), dash: Dash, stretches: Vec<Vec<(f64, f64)>>) -> Curve {
    let look = look(number);
    Curve {
        title: title.to_owned(),
        marks: overlay::sparse(&stretches.concat(), number),
        stretches,
        colour: look.colour,
        dash: Some(dash),
        shape: look.shape,
    }
}
