//! Response time by percentile.

use super::axis::Axis;
use super::legend::{Entry, Legend};
use super::look::{Dash, SERIES, look};
use super::panel::{Curve, Panel};
use super::series::PercentilePoint;
use super::{Series, overlay};

pub(super) fn panels(series: &[Series]) -> Vec<Panel> {
    let (curves, legend): (Vec<_>, _) = match series {
        [only] => (both(only).into(), legend_of_one(only)),
        _ => (
            series.iter().enumerate().map(latency).collect(),
            vec![overlay::names(series)],
        ),
    };
    let points = |curve: &Curve| {
        curve
            .stretches
            .iter()
            .flatten()
            .copied()
            .collect::<Vec<_>>()
    };
    let points: Vec<_> = curves.iter().flat_map(points).collect();
    let nines = points.iter().map(|(nines, _)| *nines).fold(0.0, f64::max);
    vec![Panel {
        title: "Response time by percentile".into(),
        x: Axis::percentiles("percentile of requests", nines),
        y: Axis::fitting("response time (ms)", points.iter().map(|(_, time)| *time)),
        curves,
        legend: Legend::new(legend),
    }]
}

/// Latency and service time of a single series: name, dash and number of the colour.
const KINDS: [(&str, Dash, usize); 2] = [
    ("latency, from the intended time", Dash::Solid, 0),
    ("service time, from the sending", Dash::Long, 1),
];

fn legend_of_one(series: &Series) -> Vec<Vec<Entry>> {
    let key = |(name, dash, paint): (&str, Dash, usize)| Entry {
        colour: SERIES[paint].light,
        dash: Some(dash),
        ..Entry::heading(name)
    };
    vec![vec![Entry::heading(&series.name)], KINDS.map(key).into()]
}

fn both(series: &Series) -> [Curve; 2] {
    let points = [&series.latency, &series.service];
    [0, 1].map(|kind| {
        let (name, dash, paint) = KINDS[kind];
        Curve {
            dash: Some(dash),
            colour: SERIES[paint].light,
            ..curve(format!("{} {name}", series.name), points[kind], paint)
        }
    })
}

fn latency((number, series): (usize, &Series)) -> Curve {
    let curve = curve(series.name.clone(), &series.latency, number);
    let points: Vec<_> = curve.stretches.iter().flatten().copied().collect();
    Curve {
        marks: overlay::sparse(&points, number),
        ..curve
    }
}

fn curve(title: String, points: &[PercentilePoint], number: usize) -> Curve {
    let points = points.iter().map(|point| (point.nines, point.milliseconds));
    Curve {
        title,
        stretches: vec![points.collect()],
        colour: look(number).colour,
        dash: Some(Dash::Solid),
        marks: Vec::new(),
        shape: look(number).shape,
    }
}
