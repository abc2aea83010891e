//! Goals and whether they were met.

use std::fmt;

use crate::declare::{Case, Goal};
use crate::result::{CaseOutcome, Judged};

/// Judges the goals that apply to these parameters, and whose contestants take part.
pub(crate) fn judge(case: &Case, outcome: &CaseOutcome) -> Vec<Judged> {
    let applies = |goal: &&Goal| {
        let mut wanted = goal.only.iter();
        wanted.all(|(name, value)| outcome.parameters.get(name) == Some(value))
            && [
                Some(&goal.contestant),
                goal.beside.as_ref(),
                goal.minus.as_ref(),
            ]
            .into_iter()
            .flatten()
            .all(|name| outcome.row(name).is_some())
    };
    case.goals
        .iter()
        .filter(applies)
        .map(|goal| judged(goal, outcome))
        .collect()
}

fn judged(goal: &Goal, outcome: &CaseOutcome) -> Judged {
    let row = outcome.row(&goal.contestant);
    let with = |other: &String| row.zip(outcome.row(other));
    let spread = match (&goal.beside, &goal.minus) {
        (Some(other), _) => with(other).and_then(|(row, other)| row.ratio(other, &goal.figure)),
        (_, Some(other)) => {
            with(other).and_then(|(row, other)| row.difference(other, &goal.figure))
        }
        (None, None) => row.and_then(|row| row.spread(&goal.figure)),
    };
    let measured = spread.map(|spread| match (goal.worst, goal.at_least) {
        (false, _) => spread.median,
        (true, Some(_)) => spread.least,
        (true, None) => spread.most,
    });
    Judged {
        goal: goal.clone(),
        measured,
        met: measured.is_some_and(|measured| {
            goal.at_most.is_none_or(|most| measured <= most)
                && goal.at_least.is_none_or(|least| measured >= least)
        }),
    }
}

impl fmt::Display for Judged {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Goal {
            contestant,
            figure,
            beside,
            ..
        } = &self.goal;
        write!(out, "{contestant}, `{figure}`")?;
        if let Some(other) = beside {
            write!(out, " as a multiple of {other}'s")?;
        }
        if let Some(other) = &self.goal.minus {
            write!(out, " less {other}'s")?;
        }
        if self.goal.worst {
            write!(out, ", worst round")?;
        }
        for (name, value) in &self.goal.only {
            write!(out, ", {name} {value}")?;
        }
        for (limit, sign) in [(self.goal.at_most, "<="), (self.goal.at_least, ">=")] {
            if let Some(limit) = limit {
                write!(out, ": goal {sign} {limit}")?;
            }
        }
        match self.measured {
            Some(measured) => write!(out, ", measured {measured:.2}")?,
            None => write!(out, ", not measured")?,
        }
        write!(out, ": {}", if self.met { "met" } else { "**missed**" })
    }
}
