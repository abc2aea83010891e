//! The table of many seeds.

use std::fmt::Write as _;
use std::time::Duration;

use crate::checker::Counts;
use crate::plan::KINDS;
use crate::run::Outcome;

/// Returns the numbers of these seeds as a table, and each violation with its seed.
pub(crate) fn report(outcomes: &[Outcome]) -> String {
    let mut text = format!("\n{:<34} {:>9}\n", "seeds", outcomes.len());
    let mut row = |name: &str, value: u64| {
        writeln!(text, "{name:<34} {value:>9}").expect("a string takes all");
    };
    let sum = |of: fn(&Counts) -> u64| outcomes.iter().map(|outcome| of(&outcome.counts)).sum();
    let max = |of: fn(&Counts) -> u64| {
        let values = outcomes.iter().map(|outcome| of(&outcome.counts));
        values.max().unwrap_or(0)
    };
    for (kind, name) in KINDS.iter().enumerate() {
        row(
            name,
            outcomes.iter().map(|outcome| outcome.faults[kind]).sum(),
        );
    }
    row("durable messages", sum(|counts| counts.durable));
    row("- acknowledged", sum(|counts| counts.acknowledged));
    row("- applied", sum(|counts| counts.applied));
    row("- repeated to the group", sum(|counts| counts.repeated));
    row("asks", sum(|counts| counts.asks));
    row("- done", sum(|counts| counts.asks_done));
    row("- surely not done", sum(|counts| counts.asks_refused));
    row("- late or lost", sum(|counts| counts.asks_unknown));
    row("writes of states", sum(|counts| counts.writes));
    row("activations", sum(|counts| counts.activations));
    row("takeovers", sum(|counts| counts.takeovers));
    row("most beyond a deadline, ms", max(|counts| counts.late_ms));
    row(
        "latest task of a client, ms",
        max(|counts| counts.lateness_ms),
    );
    row("median recovery, ms", recovery(outcomes, 2));
    row("longest recovery, ms", recovery(outcomes, 1));
    let violations = outcomes
        .iter()
        .map(|outcome| outcome.violations.len() as u64);
    row("violations", violations.sum());
    let failures = outcomes.iter().filter(|outcome| outcome.failure.is_some());
    row("runs that failed themselves", failures.count() as u64);
    text
}

/// Returns one line for a seed.
pub(crate) fn line(outcome: &Outcome) -> String {
    let counts = &outcome.counts;
    let mut text = format!(
        "seed {:<6} {:>3} faults, {} of {} durable acknowledged, {} of {} asks done, \
         {} takeovers, recovery {:.1} s, {:.1} s",
        outcome.seed,
        outcome.faults.iter().sum::<u64>(),
        counts.acknowledged,
        counts.durable,
        counts.asks_done,
        counts.asks,
        counts.takeovers,
        outcome.recovery.as_secs_f64(),
        outcome.took.as_secs_f64(),
    );
    if let Some(kept) = &outcome.kept {
        let seed = outcome.seed;
        let shown = outcome.violations.iter().take(5);
        for violation in shown {
            write!(text, "\n  VIOLATION {violation}").expect("a string takes all");
        }
        let (count, failure) = (outcome.violations.len(), &outcome.failure);
        write!(
            text,
            "\n  {count} violations, {failure:?}; logs in {}; again with FIRST={seed} SEEDS=1",
            kept.display()
        )
        .expect("a string takes all");
    }
    text
}

/// Returns the time that one of so many seeds needs more than, in milliseconds.
fn recovery(outcomes: &[Outcome], part: usize) -> u64 {
    let mut times: Vec<_> = outcomes.iter().map(|outcome| outcome.recovery).collect();
    times.sort_unstable_by(|one, other| other.cmp(one));
    let place = if part == 1 { 0 } else { times.len() / part };
    let time = times.get(place).copied().unwrap_or(Duration::ZERO);
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
