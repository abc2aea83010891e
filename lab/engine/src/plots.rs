//! The pictures of an experiment.

use std::collections::BTreeMap;

use greenroom_load::plot::{self, Series, Sweep};
use greenroom_load::run::StreamMeasurement;

use crate::declare::{Case, Plot};
use crate::result::{CaseOutcome, Outcome};

/// The measured streams by case and load, of each contestant its rounds.
pub(crate) type Streams = BTreeMap<(String, String), Vec<(String, Vec<StreamMeasurement>)>>;

/// A picture, and the end of its file's name.
#[derive(Clone, Debug)]
pub(crate) struct Picture {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) svg: String,
}

/// Draws the pictures of a case; those without data are left out.
pub(crate) fn of_case(case: &Case, outcome: &Outcome, streams: &Streams) -> Vec<Picture> {
    let numbered = case.plots.iter().enumerate();
    let drawn = numbered.filter_map(|(number, plot)| {
        let (title, svg) = match plot {
            Plot::Rate { title, load } => (title, against_rate(case, title, load, streams)?),
            Plot::Sweep {
                title,
                x,
                figure,
                label,
            } => {
                let sweep = Sweep {
                    title: title.clone(),
                    x: x.clone(),
                    y: if label.is_empty() { figure } else { label }.clone(),
                    lines: lines(case, outcome, x, figure),
                };
                (
                    title,
                    (!sweep.lines.is_empty()).then(|| plot::sweep(&sweep))?,
                )
            }
        };
        Some(Picture {
            name: format!("{}-{}", case.name, number + 1),
            title: title.clone(),
            svg,
        })
    });
    drawn.collect()
}

fn against_rate(case: &Case, title: &str, load: &str, streams: &Streams) -> Option<String> {
    let rows = streams.get(&(case.name.clone(), load.to_owned()))?;
    let series: Vec<_> = rows
        .iter()
        .map(|(label, rounds)| Series::of_rounds(label, &rounds.iter().collect::<Vec<_>>()))
        .collect();
    Some(plot::response_time_against_rate_titled(title, &series))
}

fn lines(case: &Case, outcome: &Outcome, x: &str, figure: &str) -> Vec<(String, Vec<(f64, f64)>)> {
    let mine = || outcome.cases.iter().filter(|one| one.name == case.name);
    let mut labels: Vec<(String, String)> = Vec::new();
    for row in mine().flat_map(|one| &one.rows).filter(|row| !row.again) {
        let entry = (row.contestant.clone(), row.label.clone());
        if !labels.contains(&entry) {
            labels.push(entry);
        }
    }
    let line = |(contestant, label): (String, String)| {
        let point = |one: &CaseOutcome| {
            let spread = one.row(&contestant)?.spread(figure)?;
            Some((*one.parameters.get(x)?, spread.median))
        };
        let points: Vec<_> = mine().filter_map(point).collect();
        (!points.is_empty()).then_some((label, points))
    };
    labels.into_iter().filter_map(line).collect()
}
