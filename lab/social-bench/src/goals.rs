//! The goals of all cases in one table.

use std::env;
use std::process::Command;

use anyhow::Context;
use bench_kit::{Report, lab_directory, table};
use serde::Deserialize;
use serde_json::{Value, json};

/// The verdicts of the cases, in their order.
#[derive(Debug, Default)]
pub(crate) struct Goals(Vec<Goal>);

/// A verdict and its case.
#[derive(Debug)]
struct Goal {
    case: &'static str,
    verdict: ParsedVerdict,
}

/// A verdict, as its JSON has it.
#[derive(Debug, Deserialize)]
struct ParsedVerdict {
    what: String,
    measured: Option<f64>,
    at_least: Option<f64>,
    at_most: Option<f64>,
    unit: String,
}

impl Goals {
    pub(crate) fn note(&mut self, report: &Report) -> anyhow::Result<()> {
        for verdict in &report.verdicts {
            let value = serde_json::to_value(verdict).context("a verdict as JSON")?;
            self.0.push(Goal::of(report.case, value)?);
        }
        Ok(())
    }

    pub(crate) fn report(&self) -> Report {
        let mut out = table(["goal", "case", "must reach", "measured", "met"]);
        for goal in &self.0 {
            out.add_row(goal.row());
        }
        Report {
            case: "goals",
            title: "what must be reached, and what was".to_owned(),
            notes: vec![
                format!("commit {}", commit()),
                format!("command: bench-social {}", arguments()),
            ],
            table: out.to_string(),
            verdicts: Vec::new(),
            samples: json!(null),
        }
    }
}

impl Goal {
    fn of(case: &'static str, value: Value) -> anyhow::Result<Self> {
        let verdict = serde_json::from_value(value).context("a verdict's JSON")?;
        Ok(Self { case, verdict })
    }

    fn is_met(&self) -> Option<bool> {
        let measured = self.verdict.measured?;
        let enough = self.verdict.at_least.is_none_or(|least| measured >= least);
        Some(enough && self.verdict.at_most.is_none_or(|most| measured <= most))
    }

    fn row(&self) -> [String; 5] {
        let unit = &self.verdict.unit;
        let must = match (self.verdict.at_least, self.verdict.at_most) {
            (Some(least), _) => format!(">= {least}{unit}"),
            (None, Some(most)) => format!("<= {most}{unit}"),
            (None, None) => "-".to_owned(),
        };
        let measured = self
            .verdict
            .measured
            .map(|value| format!("{value:.2}{unit}"));
        let met = match self.is_met() {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "not measured",
        };
        [
            self.verdict.what.clone(),
            self.case.to_owned(),
            must,
            measured.unwrap_or_else(|| "-".to_owned()),
            met.to_owned(),
        ]
    }
}

fn arguments() -> String {
    env::args().skip(1).collect::<Vec<_>>().join(" ")
}

/// Returns the commit, with a mark if files were changed since.
fn commit() -> String {
    let described = Command::new("git")
        .current_dir(lab_directory())
        .args(["describe", "--always", "--dirty"])
        .output();
    match described {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
        _ => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use bench_kit::Verdict;

    use super::*;

    fn rows(verdict: &Verdict) -> [String; 5] {
        let value = serde_json::to_value(verdict).expect("JSON");
        Goal::of("likes", value).expect("a verdict").row()
    }

    #[test]
    fn a_row_says_whether_a_goal_was_met() {
        let slow = Verdict::at_least("likes", Some(4_000.0), 5_000.0, "/s");
        let expected = ["likes", "likes", ">= 5000/s", "4000.00/s", "NO"];
        assert_eq!(rows(&slow), expected);
        let quick = Verdict::at_most("p99", Some(20.0), 50.0, " ms");
        assert_eq!(rows(&quick)[2..], ["<= 50 ms", "20.00 ms", "yes"]);
        let unknown = Verdict::at_most("p99", None, 50.0, " ms");
        assert_eq!(rows(&unknown)[3..], ["-", "not measured"]);
    }
}
