//! The cases with an allocator that counts, which would disturb the clock.

use clap::Parser;
use lab_actors::{Arguments, Outcome, print};

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let mut outcome = None;
    // Of this thread, which is the only one.
    let counted = allocation_counter::measure(|| outcome = Some(arguments.run()));
    let Some(outcome) = outcome.transpose()? else {
        return Ok(());
    };
    print(&with_allocations(outcome, counted.count_total))
}

#[expect(clippy::cast_precision_loss, reason = "billions at most")]
fn with_allocations(mut outcome: Outcome, count: u64) -> Outcome {
    if let Outcome::Measured(sample) = &mut outcome {
        sample.allocations = Some(count as f64 / sample.operations_with_warm_up as f64);
    }
    outcome
}
