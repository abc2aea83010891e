//! `/hello` at 100/s while more is asked of the server than it can compute.

mod capacity;
mod flood;
mod probe;
mod report;

use bench_kit::Report;
use bench_kit::rounds::{Row, interleave, samples};
use serde::Serialize;

use super::Context;
use crate::contestant::{Contestant, for_computing};

pub(super) use capacity::{Capacity, roughly_per_second};
pub(super) use flood::Flood;
pub(super) use report::{FLOOD_COLUMNS, flood_cells};

const FACTORS: [f64; 4] = [0.7, 2.0, 6.0, 10.0];
/// A round takes half a minute for each server.
const ROUNDS_MAX: usize = 2;

#[derive(Clone, Copy, Debug, Serialize)]
struct Sample {
    capacity: Capacity,
    /// In the order of [`FACTORS`].
    floods: [Flood; FACTORS.len()],
}

pub(super) fn run(context: &Context) -> anyhow::Result<Report> {
    let (contestants, left_out) = for_computing(context)?;
    let rounds = context.rounds.min(ROUNDS_MAX);
    let rows = interleave("overload", rounds, &contestants, |contestant| {
        measure(contestant, context)
    })?;
    Ok(Report {
        case: "overload",
        title: "/hello at 100/s while fib(50000) is offered at 0.7, 2, 6, 10 x capacity".to_owned(),
        notes: report::notes(context, rounds, left_out),
        table: report::tables(&rows),
        verdicts: report::verdicts(&rows),
        samples: samples(&rows),
    })
}

fn measure(contestant: &Contestant, context: &Context) -> anyhow::Result<Sample> {
    let server = contestant.start(context)?;
    context.warm_up(&server)?;
    let capacity = Capacity::measure(context, &server)?;
    drop(server);
    let flood = |factor| {
        // What is left of one flood must not weigh on the next.
        let server = contestant.start(context)?;
        context.warm_up(&server)?;
        Flood::measure(context, &server, &capacity, factor)
    };
    let [first, second, third, fourth] = FACTORS;
    Ok(Sample {
        capacity,
        floods: [flood(first)?, flood(second)?, flood(third)?, flood(fourth)?],
    })
}

/// The floods of one factor.
fn floods(row: &Row<Sample>, index: usize) -> Row<Flood> {
    Row {
        name: row.name.clone(),
        samples: row
            .samples
            .iter()
            .map(|sample| sample.floods[index])
            .collect(),
    }
}
