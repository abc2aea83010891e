//! One case, measured: its table.

use actor_bench_cases::{Case, Outcome, Sample};
use bench_kit::rounds::{AGAIN, Row, find, interleave, samples};
use bench_kit::{Report, RunOptions, Spread, cell, table};

use crate::contestant::Contestant;
use crate::goals::{goal, unit, value, verdicts};
use crate::peer::Peer;

const PERCENT: f64 = 100.0;
const NOTHING: &str = "-";

/// Every program's samples.
pub(crate) struct Measured {
    pub(crate) case: Case,
    pub(crate) rows: Vec<Row<Sample>>,
    /// The programs without samples, each with the reason.
    missing: Vec<(String, String)>,
}

impl Measured {
    pub(crate) fn of(
        case: Case,
        contestants: &[Contestant],
        options: &RunOptions,
    ) -> anyhow::Result<Self> {
        let outcomes = interleave(&case.name(), options.rounds(), contestants, |contestant| {
            Ok(contestant.measure(case, options))
        })?;
        let mut measured = Self {
            case,
            rows: Vec::new(),
            missing: Vec::new(),
        };
        for row in outcomes {
            measured.take(row);
        }
        Ok(measured)
    }

    /// Adds a row. One without a sample in every round counts as missing.
    fn take(&mut self, row: Row<Outcome>) {
        let mut samples = Vec::new();
        for outcome in row.samples {
            match outcome {
                Outcome::Measured(sample) => samples.push(sample),
                Outcome::Missing(why) => return self.missing.push((row.name, why)),
            }
        }
        let name = row.name;
        self.rows.push(Row { name, samples });
    }

    pub(crate) fn spread(&self, row: &Row<Sample>) -> Option<Spread> {
        row.spread(|sample| value(self.case, sample))
    }

    pub(crate) fn ours(&self) -> Option<&Row<Sample>> {
        find(&self.rows, Peer::Greenroom.name())
    }

    /// Returns one program as a multiple of another in the same round.
    pub(crate) fn ratio(&self, row: &Row<Sample>, other: &Row<Sample>) -> Option<Spread> {
        row.ratio(other, |sample| value(self.case, sample))
    }

    /// Returns the program with the least median.
    pub(crate) fn best(&self) -> Option<&Row<Sample>> {
        let median = |row: &&Row<Sample>| self.spread(row).map_or(f64::NAN, |spread| spread.median);
        self.rows
            .iter()
            .filter(|row| !row.name.ends_with(AGAIN))
            .min_by(|one, other| median(one).total_cmp(&median(other)))
    }

    pub(crate) fn report(&self, rounds: usize) -> Report {
        let case = self.case;
        let mut notes = vec![
            format!(
                "medians of {rounds} rounds (least–most), a fresh process each; \
                 goal of Greenroom: at most {}{}",
                goal(case),
                unit(case)
            ),
            "x: within the round; x best: of the least median; Greenroom x: Greenroom as a \
             multiple of this row"
                .to_owned(),
        ];
        notes.extend(note(case).map(str::to_owned));
        let missing = self.missing.iter();
        notes.extend(missing.map(|(name, why)| format!("{name}: {why}")));
        Report {
            case: leaked(case),
            title: case.title(),
            notes,
            table: self.render(),
            verdicts: verdicts(case, self.ours()),
            samples: samples(&self.rows),
        }
    }

    fn render(&self) -> String {
        let mut header = vec![
            "program",
            "ns",
            "CPU ns",
            "waited %",
            "x best",
            "Greenroom x",
        ];
        match self.case {
            Case::Idle => header.insert(1, "bytes"),
            Case::Async => header.insert(1, "allocations"),
            _ => {}
        }
        let mut out = table(header.iter().copied());
        for row in &self.rows {
            out.add_row(self.cells(row));
        }
        for (name, why) in &self.missing {
            let short = if why == "not installed" { why } else { NOTHING };
            let cells = (1..header.len()).map(|_| short.to_owned());
            out.add_row(std::iter::once(name.clone()).chain(cells));
        }
        out.to_string()
    }

    fn cells(&self, row: &Row<Sample>) -> Vec<String> {
        let best = self.best().and_then(|best| self.ratio(row, best));
        let ours = self.ours().and_then(|ours| self.ratio(ours, row));
        let mut cells = vec![
            row.name.clone(),
            cell(row.spread(|sample| sample.nanoseconds), 1),
            cell(known(row, |sample| sample.cpu_nanoseconds), 1),
            cell(
                known(row, |sample| sample.waited.map(|share| share * PERCENT)),
                0,
            ),
            cell(best, 2),
            cell(ours, 2),
        ];
        match self.case {
            Case::Idle => cells.insert(1, cell(known(row, |sample| sample.bytes), 0)),
            Case::Async => cells.insert(1, cell(known(row, |sample| sample.allocations), 3)),
            _ => {}
        }
        cells
    }
}

/// Returns the spread of the samples that have the value.
fn known(row: &Row<Sample>, value: impl Fn(&Sample) -> Option<f64>) -> Option<Spread> {
    Spread::of(row.samples.iter().filter_map(value))
}

fn note(case: Case) -> Option<&'static str> {
    let note = match case {
        Case::PingPong => {
            "ns a round trip: time of both workers, less what the 4 pairs computed (1 us a round \
             trip), over the round trips of all 68 pairs; an idle worker counts as if it worked"
        }
        Case::Idle => {
            "bytes: what the process' resident memory grew by, over the actors, less their state \
             of 8 bytes and the reference to each"
        }
        Case::Spawn => {
            "from the first actor to when the last one has begun, in thousands at a time"
        }
        Case::Async => {
            "allocations a message: counted in a process of their own, all of it over all messages"
        }
        Case::AskInline => {
            "the one who asks is an actor; where a library calls nothing inline, the other one is \
             scheduled as in ask"
        }
        _ => return None,
    };
    Some(note)
}

/// Leaks the name of a case: a report keeps it for ever, and there are a dozen.
fn leaked(case: Case) -> &'static str {
    case.name().leak()
}
