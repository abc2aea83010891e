//! The goals of Greenroom.

use actor_bench_cases::{Case, Sample};
use bench_kit::Verdict;
use bench_kit::rounds::Row;

/// The most of ping-pong in any round, in nanoseconds.
const ROUND_TRIP_NANOSECONDS_WORST: f64 = 1_000.0;
/// The most allocations a message. Those before the first message, over millions of messages, are
/// less.
const ALLOCATIONS_MAX: f64 = 0.001;

/// Returns the goal of a case: in nanoseconds, of idle actors in bytes.
pub(crate) fn goal(case: Case) -> f64 {
    match case {
        Case::Tell | Case::Hop => 60.0,
        Case::FanIn | Case::FanInActors => 70.0,
        Case::AskInline => 80.0,
        Case::FanInTwo | Case::FanInActorsTwo => 110.0,
        Case::Async => 120.0,
        Case::Bus => 150.0,
        Case::Ask | Case::AskQueued | Case::Idle => 200.0,
        Case::Spawn => 300.0,
        Case::PingPong => 500.0,
    }
}

/// Returns the value that a case is about: nanoseconds, or bytes.
pub(crate) fn value(case: Case, sample: &Sample) -> f64 {
    match case {
        Case::Idle => sample.bytes.unwrap_or(f64::NAN),
        _ => sample.nanoseconds,
    }
}

/// Returns the unit of [`value`].
pub(crate) fn unit(case: Case) -> &'static str {
    match case {
        Case::Idle => " B",
        _ => " ns",
    }
}

pub(crate) fn verdicts(case: Case, ours: Option<&Row<Sample>>) -> Vec<Verdict> {
    let spread = ours.and_then(|row| row.spread(|sample| value(case, sample)));
    let at_most = |what: &str, measured, goal, unit| {
        Verdict::at_most(
            format!("Greenroom, {}: {what}", case.name()),
            measured,
            goal,
            unit,
        )
    };
    let median = spread.map(|spread| spread.median);
    let mut verdicts = vec![at_most("median", median, goal(case), unit(case))];
    if case == Case::PingPong {
        let worst = spread.map(|spread| spread.max);
        let goal = ROUND_TRIP_NANOSECONDS_WORST;
        verdicts.push(at_most("worst round", worst, goal, unit(case)));
    }
    if case == Case::Async {
        let allocations = ours.and_then(|row| row.samples.first()?.allocations);
        verdicts.push(at_most(
            "allocations a message",
            allocations,
            ALLOCATIONS_MAX,
            "",
        ));
    }
    verdicts
}
