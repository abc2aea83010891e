//! The rounds of an experiment.

use std::collections::BTreeMap;

use greenroom_load::run::{Stop, StreamMeasurement};

use crate::Args;
use crate::builds::Builds;
use crate::declare::{Case, Contestant, Experiment, Plot};
use crate::load::Missing;
use crate::machine::{Machine, Ticks};
use crate::plots::Streams;
use crate::result::{CaseOutcome, FORMAT, Outcome, Row};
use crate::round::Turn;
use crate::verdict;
use crate::words::Words;

/// Measured streams that are kept for one plot's contestant: rounds of 2 MB each.
const KEPT_STREAMS_MAX: usize = 8;

/// Runs an experiment: builds, then each case in interleaved rounds.
///
/// # Errors
/// If the lab itself fails. A stop ends it with what there is. Contestants that fail are part of
/// the result.
pub(crate) fn experiment(
    name: &str,
    experiment: &Experiment,
    args: &Args,
    stop: &Stop,
) -> anyhow::Result<(Outcome, Streams)> {
    let machine = Machine::describe();
    let started = jiff::Zoned::now().with_time_zone(jiff::tz::TimeZone::UTC);
    let mut builds = Builds::read(&args.program)?;
    let (taking_part, left_out) = prepared(experiment, args, &mut builds);
    let mut words = Words::common();
    builds.name_in(&mut words);
    let quick = experiment.quick_vars.iter().filter(|_| args.quick);
    for (name, value) in experiment.vars.iter().chain(quick) {
        words.set(name, value);
    }
    let versions = taking_part
        .iter()
        .filter_map(|(name, contestant)| Some((name.to_string(), builds.version(contestant)?)));
    let mut outcome = Outcome {
        format: FORMAT,
        experiment: name.to_owned(),
        title: experiment.title.clone(),
        question: experiment.question.clone(),
        source: experiment.source.clone(),
        started: started.strftime("%Y-%m-%d %H:%M").to_string(),
        quick: args.quick,
        machine,
        versions: versions.collect(),
        left_out,
        cases: Vec::new(),
    };
    let mut streams = Streams::default();
    let begin = Ticks::now();
    for case in chosen(experiment, args) {
        let seconds = case.seconds.unwrap_or(experiment.seconds);
        words.set("seconds", if args.quick { 1.0 } else { seconds });
        for parameters in combinations(case, args.quick) {
            let rounds = rounds(experiment, case, args);
            let has_own = !args.quick && args.rounds.is_none();
            let bench = Bench {
                experiment,
                case,
                parameters: &parameters,
                words: &words,
                taking_part: &taking_part,
                stop,
                rounds_of: has_own.then_some(&case.rounds_of),
            };
            let rows = bench.rounds(rounds, &mut streams);
            let mut done = CaseOutcome {
                name: case.name.clone(),
                parameters,
                rounds,
                rows,
                goals: Vec::new(),
            };
            done.goals = verdict::judge(case, &done);
            outcome.cases.push(done);
        }
    }
    outcome.machine.stolen_percent = begin.stolen_percent_since();
    Ok((outcome, streams))
}

type TakingPart<'a> = Vec<(&'a str, &'a Contestant)>;

fn prepared<'a>(
    experiment: &'a Experiment,
    args: &Args,
    builds: &mut Builds,
) -> (TakingPart<'a>, BTreeMap<String, String>) {
    let mut taking_part = Vec::new();
    let mut left_out = BTreeMap::new();
    let mut services = experiment.services.values();
    let services = services.try_for_each(|service| builds.prepare_service(service));
    for (name, contestant) in &experiment.contestants {
        if !args.contestant.is_empty() && !args.contestant.contains(name) {
            continue;
        }
        match services.clone().and_then(|()| builds.prepare(contestant)) {
            Ok(()) => taking_part.push((name.as_str(), contestant)),
            Err(reason) => {
                eprintln!("LEFT OUT: {}: {reason}", contestant.label);
                left_out.insert(contestant.label.clone(), reason);
            }
        }
    }
    (taking_part, left_out)
}

fn chosen<'a>(experiment: &'a Experiment, args: &'a Args) -> impl Iterator<Item = &'a Case> {
    let is_chosen = |case: &&Case| {
        args.only.is_empty() || args.only.iter().any(|only| case.name.starts_with(only))
    };
    experiment.cases.iter().filter(is_chosen)
}

/// Returns the combinations of parameters; of a quick run the first and the last.
fn combinations(case: &Case, quick: bool) -> Vec<BTreeMap<String, f64>> {
    let mut all = case.combinations();
    if quick && all.len() > 2 {
        all.drain(1..all.len() - 1);
    }
    all
}

fn rounds(experiment: &Experiment, case: &Case, args: &Args) -> u32 {
    if args.quick {
        return args.rounds.unwrap_or(1);
    }
    args.rounds
        .or(case.rounds)
        .unwrap_or(experiment.rounds)
        .max(1)
}

/// One case with one combination of parameters.
#[derive(Debug)]
struct Bench<'a> {
    experiment: &'a Experiment,
    case: &'a Case,
    parameters: &'a BTreeMap<String, f64>,
    words: &'a Words,
    taking_part: &'a TakingPart<'a>,
    stop: &'a Stop,
    /// Rounds of single contestants; `None` where a flag decides.
    rounds_of: Option<&'a BTreeMap<String, u32>>,
}

impl Bench<'_> {
    /// Runs all rounds; every second one goes backwards, so that a machine that becomes slower
    /// treats all alike.
    fn rounds(&self, rounds: u32, streams: &mut Streams) -> Vec<Row> {
        let mut rows = self.empty_rows();
        let of = |row: &Row| {
            let own = self.rounds_of.and_then(|of| of.get(&row.contestant));
            own.copied().unwrap_or(rounds)
        };
        for round in 0..rows.iter().map(of).max().unwrap_or(0) {
            let mut order: Vec<usize> = (0..rows.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for index in order {
                let rounds = of(&rows[index]);
                if round < rounds && !self.stop.is_stopped() {
                    self.turn(round, rounds, &mut rows[index], streams);
                }
            }
        }
        rows
    }

    fn empty_rows(&self) -> Vec<Row> {
        let part = self.taking_part.iter().filter(|(name, _)| {
            let named = &self.case.contestants;
            named.is_empty() || named.iter().any(|one| one == name)
        });
        let row = |name: &str, contestant: &Contestant, again: bool| Row {
            contestant: name.to_owned(),
            label: format!(
                "{}{}",
                contestant.label,
                if again { " (again)" } else { "" }
            ),
            again,
            samples: Vec::new(),
            errors: Vec::new(),
            missing: None,
        };
        let twice = |(name, contestant): &(&str, &Contestant)| {
            let first = row(name, contestant, false);
            [
                Some(first),
                contestant.again.then(|| row(name, contestant, true)),
            ]
        };
        part.flat_map(twice).flatten().collect()
    }

    fn turn(&self, round: u32, rounds: u32, row: &mut Row, streams: &mut Streams) {
        let case = self.name();
        eprintln!("{case}: round {} of {rounds}: {} …", round + 1, row.label);
        let turn = Turn {
            experiment: self.experiment,
            case: self.case,
            name: &row.contestant,
            contestant: &self.experiment.contestants[&row.contestant],
            parameters: self.parameters,
            words: self.words,
        };
        match turn.run(self.stop) {
            Ok(sample) => {
                row.samples.push(Some(sample.figures));
                self.keep(row, sample.streams, streams);
            }
            Err(error) if error.downcast_ref::<Missing>().is_some() => {
                row.samples.push(None);
                row.missing = Some(error.root_cause().to_string());
            }
            Err(error) => {
                eprintln!("FAILED: {case}: {}: {error:#}", row.label);
                row.samples.push(None);
                row.errors.push(format!("{error:#}"));
            }
        }
    }

    fn name(&self) -> String {
        let parameters = self
            .parameters
            .iter()
            .map(|(name, value)| format!(" {name}={value}"));
        format!("{}{}", self.case.name, parameters.collect::<String>())
    }

    /// Keeps the streams that a plot needs.
    fn keep(&self, row: &Row, measured: Vec<StreamMeasurement>, streams: &mut Streams) {
        let is_plotted = |stream: &StreamMeasurement| {
            self.case
                .plots
                .iter()
                .any(|plot| matches!(plot, Plot::Rate { load, .. } if *load == stream.plan.name))
        };
        if row.again {
            return;
        }
        for mut stream in measured.into_iter().filter(is_plotted) {
            stream.first = None;
            let key = (self.case.name.clone(), stream.plan.name.clone());
            let rows = streams.entry(key).or_default();
            let index = rows.iter().position(|(label, _)| *label == row.label);
            let index = index.unwrap_or_else(|| {
                rows.push((row.label.clone(), Vec::new()));
                rows.len() - 1
            });
            let kept = &mut rows[index].1;
            if kept.len() < KEPT_STREAMS_MAX {
                kept.push(stream);
            }
        }
    }
}
