//! The result of an experiment, as data.

use std::collections::BTreeMap;

use greenroom_load::compare::median;
use serde::Serialize;

use crate::declare::Goal;
use crate::figures::Figures;
use crate::machine::Machine;

/// The version of the file's form.
pub(crate) const FORMAT: u32 = 1;

/// All that an experiment has measured.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Outcome {
    pub(crate) format: u32,
    pub(crate) experiment: String,
    pub(crate) title: String,
    pub(crate) question: String,
    pub(crate) source: String,
    /// The time of its begin, in UTC.
    pub(crate) started: String,
    pub(crate) quick: bool,
    pub(crate) machine: Machine,
    /// The versions of the contestants that took part.
    pub(crate) versions: BTreeMap<String, String>,
    /// Those that could not take part, and why.
    pub(crate) left_out: BTreeMap<String, String>,
    pub(crate) cases: Vec<CaseOutcome>,
}

/// One case with one combination of its parameters.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CaseOutcome {
    pub(crate) name: String,
    pub(crate) parameters: BTreeMap<String, f64>,
    pub(crate) rounds: u32,
    pub(crate) rows: Vec<Row>,
    pub(crate) goals: Vec<Judged>,
}

/// One contestant's samples.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) contestant: String,
    pub(crate) label: String,
    /// True for the second run of the same contestant in each round.
    pub(crate) again: bool,
    /// The figures of each round; `None` when it failed.
    pub(crate) samples: Vec<Option<Figures>>,
    pub(crate) errors: Vec<String>,
    /// The reason why the system has no figures here.
    pub(crate) missing: Option<String>,
}

/// A goal, and what was measured.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Judged {
    #[serde(flatten)]
    pub(crate) goal: Goal,
    pub(crate) measured: Option<f64>,
    pub(crate) met: bool,
}

/// Median, least and most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        Some(Self {
            median: median(values)?,
            least: values.iter().copied().fold(f64::INFINITY, f64::min),
            most: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }
}

impl Row {
    /// Returns a figure over all rounds that have it.
    pub(crate) fn spread(&self, figure: &str) -> Option<Spread> {
        let samples = self.samples.iter().flatten();
        let values: Vec<f64> = samples.filter_map(|one| one.get(figure).copied()).collect();
        Spread::of(&values)
    }

    /// Returns a figure as a multiple of another contestant's in the same round.
    pub(crate) fn ratio(&self, other: &Self, figure: &str) -> Option<Spread> {
        let divided = |(mine, other)| (other != 0.0).then_some(mine / other);
        Spread::of(
            &self
                .pairs(other, figure)
                .filter_map(divided)
                .collect::<Vec<_>>(),
        )
    }

    /// Returns a figure less another contestant's in the same round.
    pub(crate) fn difference(&self, other: &Self, figure: &str) -> Option<Spread> {
        let less = |(mine, other): (f64, f64)| mine - other;
        Spread::of(&self.pairs(other, figure).map(less).collect::<Vec<_>>())
    }

    fn pairs(&self, other: &Self, figure: &str) -> impl Iterator<Item = (f64, f64)> {
        let value = |sample: &Option<Figures>| sample.as_ref()?.get(figure).copied();
        let pairs = self.samples.iter().zip(&other.samples);
        pairs.filter_map(move |(mine, other)| value(mine).zip(value(other)))
    }
}

impl CaseOutcome {
    /// Returns its parameters for a sentence, such as ` at clients=10`; nothing without any.
    pub(crate) fn at(&self) -> String {
        let one = |(name, value): (&String, &f64)| format!("{name}={value}");
        let all: Vec<_> = self.parameters.iter().map(one).collect();
        match all.as_slice() {
            [] => String::new(),
            all => format!(" at {}", all.join(", ")),
        }
    }

    /// Returns a contestant's row, not its second one.
    pub(crate) fn row(&self, contestant: &str) -> Option<&Row> {
        self.rows
            .iter()
            .find(|row| row.contestant == contestant && !row.again)
    }
}

impl Outcome {
    /// Returns a line for each contestant that failed in a case.
    pub(crate) fn failures(&self) -> impl Iterator<Item = String> {
        let rows = self
            .cases
            .iter()
            .flat_map(|case| case.rows.iter().map(move |row| (case, row)));
        rows.filter_map(|(case, row)| {
            let error = row.errors.first()?;
            Some(format!(
                "{} failed in {}{}: {error}",
                row.label,
                case.name,
                case.at()
            ))
        })
    }
}
