//! Response times, rates and failures over the run.

use plotters::style::RGBColor;

use super::axis::Axis;
use super::legend::{Entry, Legend};
use super::look::{Dash, INK, SERIES, SOFT, Shape, look};
use super::panel::{Curve, Panel};
use super::series::{Latency, Moment};
use super::{Series, overlay};

const SECONDS: &str = "time since the run began (s)";
/// The shortest time axis, in seconds.
const SECONDS_MIN: f64 = 1.0;
/// The relative difference below which rates are the same: 1 %.
const SAME_RATE: f64 = 0.01;

/// A percentile: its name, its dash, the number of its colour, and its time in a latency.
type Percentile = (&'static str, Dash, usize, fn(&Latency) -> f64);

/// The curves of a single series.
const PERCENTILES: [Percentile; 4] = [
    ("p50", Dash::Solid, 0, |latency| latency.p50),
    ("p90", Dash::Mixed, 2, |latency| latency.p90),
    ("p99", Dash::Long, 1, |latency| latency.p99),
    ("max", Dash::Short, 3, |latency| latency.max),
];

pub(super) fn panels(series: &[Series]) -> Vec<Panel> {
    let latency = match series {
        [only] => latency_of_one(only),
        _ => latency_of_many(series),
    };
    vec![latency, rates(series)]
}

fn seconds(series: &[Series]) -> Axis {
    let moments = series.iter().flat_map(|one| &one.moments);
    let ends = moments.map(|moment| moment.seconds);
    Axis::tight(SECONDS, ends.chain([SECONDS_MIN]))
}

fn latency_of_one(series: &Series) -> Panel {
    let latencies = series.moments.iter().filter_map(|moment| moment.latency);
    let times = latencies.flat_map(|latency| [latency.p50, latency.max]);
    let key = |&(name, dash, paint, _): &(_, _, usize, _)| Entry {
        colour: SERIES[paint].light,
        dash: Some(dash),
        ..Entry::heading(name)
    };
    Panel {
        title: "Response time against time".into(),
        x: seconds(std::slice::from_ref(series)),
        y: Axis::fitting("response time (ms)", times),
        curves: PERCENTILES
            .iter()
            .map(|&(name, dash, paint, time)| {
                let title = format!("{} {name}", series.name);
                latency_curve(series, title, (SERIES[paint].light, dash), time)
            })
            .collect(),
        legend: Legend::new(vec![
            vec![Entry::heading(&series.name)],
            PERCENTILES.iter().map(key).collect(),
        ]),
    }
}

fn latency_of_many(series: &[Series]) -> Panel {
    let moments = series.iter().flat_map(|one| &one.moments);
    let latencies = moments.filter_map(|moment| moment.latency);
    let times = latencies.flat_map(|latency| [latency.p50, latency.p99]);
    let curves = |(number, one): (usize, &Series)| {
        overlay::PERCENTILES.map(|(name, dash, time)| {
            let look = look(number);
            let title = format!("{} {name}", one.name);
            let curve = latency_curve(one, title, (look.colour, dash), time);
            let points: Vec<_> = curve.stretches.iter().flatten().copied().collect();
            Curve {
                marks: overlay::sparse(&points, number),
                shape: look.shape,
                ..curve
            }
        })
    };
    Panel {
        title: "Response time against time".into(),
        x: seconds(series),
        y: Axis::fitting("response time (ms)", times),
        curves: series.iter().enumerate().flat_map(curves).collect(),
        legend: Legend::new(overlay::legend(series)),
    }
}

fn latency_curve(
    series: &Series,
    title: String,
    (colour, dash): (RGBColor, Dash),
    time: fn(&Latency) -> f64,
) -> Curve {
    let is_gap = |moment: &Moment| moment.latency.is_none();
    let point = |moment: &Moment| Some((moment.seconds, time(&moment.latency?)));
    let stretches = series.moments.split(is_gap);
    Curve {
        title,
        stretches: stretches
            .map(|stretch| stretch.iter().filter_map(point).collect())
            .collect(),
        colour,
        dash: Some(dash),
        marks: Vec::new(),
        shape: Shape::Disc,
    }
}

fn rates(series: &[Series]) -> Panel {
    let moments = series.iter().flat_map(|one| &one.moments);
    let values = moments
        .clone()
        .flat_map(|moment| [moment.responses, moment.failed, moment.asked.unwrap_or(0.0)]);
    let asked = asked(series);
    let is_one = series.len() == 1;
    let own = |(number, one)| responses_and_failures(number, one, is_one);
    let mut groups = match series {
        [only] => vec![vec![Entry::heading(&only.name)]],
        _ => vec![overlay::names(series)],
    };
    groups.push(rate_keys(series));
    Panel {
        title: "Request rate against time".into(),
        x: seconds(series),
        y: Axis::linear("requests per second (1/s)", values),
        legend: Legend::new(groups),
        curves: asked
            .into_iter()
            .chain(series.iter().enumerate().flat_map(own))
            .collect(),
    }
}

fn rate_keys(series: &[Series]) -> Vec<Entry> {
    let any = |is: fn(&Moment) -> bool| series.iter().flat_map(|one| &one.moments).any(is);
    let responses = if series.len() == 1 {
        SERIES[0].light
    } else {
        INK.light
    };
    let key = |text, colour, dash, shape| Entry {
        colour,
        dash,
        shape,
        ..Entry::heading(text)
    };
    let asked = key("asked for", SOFT.light, Some(Dash::Long), None);
    let failed = key(
        "failed, or status 400 and above",
        if series.len() == 1 {
            SERIES[1].light
        } else {
            INK.light
        },
        None,
        Some(Shape::Cross),
    );
    let asked = any(|moment| moment.asked.is_some()).then_some(asked);
    let failed = any(|moment| moment.failed > 0.0).then_some(failed);
    let responses = key("responses", responses, Some(Dash::Solid), None);
    [Some(responses), asked, failed]
        .into_iter()
        .flatten()
        .collect()
}

/// Returns the requested rate: as one curve if it is the same for all series as long as they
/// lasted.
fn asked(series: &[Series]) -> Vec<Curve> {
    let all: Vec<_> = series.iter().map(asked_points).collect();
    let Some(longest) = all.iter().max_by_key(|points| points.len()) else {
        return Vec::new();
    };
    if all.iter().all(|points| are_alike(points, longest)) {
        let style = (SOFT.light, Dash::Long);
        return vec![line("asked for".to_owned(), longest.clone(), style)];
    }
    let curve = |(number, (one, points)): (usize, (&Series, &Vec<_>))| {
        let style = (look(number).colour, Dash::Long);
        line(format!("{} asked for", one.name), points.clone(), style)
    };
    series.iter().zip(&all).enumerate().map(curve).collect()
}

fn asked_points(series: &Series) -> Vec<(f64, f64)> {
    let moments = series.moments.iter();
    moments
        .filter_map(|moment| Some((moment.seconds, moment.asked?)))
        .collect()
}

fn are_alike(one: &[(f64, f64)], other: &[(f64, f64)]) -> bool {
    let mut pairs = one.iter().zip(other);
    pairs.all(|((_, one), (_, other))| (one - other).abs() <= other * SAME_RATE)
}

fn responses_and_failures(number: usize, series: &Series, is_one: bool) -> [Curve; 2] {
    let look = look(number);
    let moments = series.moments.iter();
    let points: Vec<_> = moments
        .map(|moment| (moment.seconds, moment.responses))
        .collect();
    let marks = if is_one {
        Vec::new()
    } else {
        overlay::sparse(&points, number)
    };
    let title = format!("{} responses", series.name);
    let responses = line(title, points, (look.colour, Dash::Solid));
    let failures = series.moments.iter().filter(|moment| moment.failed > 0.0);
    let failed = Curve {
        title: format!("{} failed", series.name),
        stretches: Vec::new(),
        colour: if is_one { SERIES[1].light } else { look.colour },
        dash: None,
        marks: failures
            .map(|moment| (moment.seconds, moment.failed))
            .collect(),
        shape: Shape::Cross,
    };
    [
        Curve {
            marks,
            shape: look.shape,
            ..responses
        },
        failed,
    ]
}

fn line(title: String, points: Vec<(f64, f64)>, (colour, dash): (RGBColor, Dash)) -> Curve {
    Curve {
        title,
        stretches: vec![points],
        colour,
        dash: Some(dash),
        marks: Vec::new(),
        shape: Shape::Disc,
    }
}
