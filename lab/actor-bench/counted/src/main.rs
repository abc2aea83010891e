//! Runs a case with an allocator that counts.

use actor_bench_cases::{Options, Outcome, print};
use actor_bench_programs::{actix, greenroom, kameo, ractor, tokio, xtra};
use clap::{Parser, ValueEnum};

/// One case with one actor library, its allocations counted; prints them as a line of JSON.
#[derive(Debug, Parser)]
struct Arguments {
    /// The library
    #[arg(long, value_enum)]
    peer: Peer,
    #[command(flatten)]
    options: Options,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Peer {
    Actix,
    Greenroom,
    Kameo,
    Ractor,
    Tokio,
    Xtra,
}

fn main() -> anyhow::Result<()> {
    let Arguments { peer, options } = Arguments::parse();
    let run = match peer {
        Peer::Actix => actix::run,
        Peer::Greenroom => greenroom::run,
        Peer::Kameo => kameo::run,
        Peer::Ractor => ractor::run,
        Peer::Tokio => tokio::run,
        Peer::Xtra => xtra::run,
    };
    let mut outcome = None;
    // Of this thread, which is the only one.
    let counted = allocation_counter::measure(|| outcome = Some(run(&options)));
    let Some(outcome) = outcome.transpose()? else {
        return Ok(());
    };
    print(&with_allocations(outcome, counted.count_total))
}

#[expect(clippy::cast_precision_loss, reason = "billions at most")]
fn with_allocations(outcome: Outcome, count: u64) -> Outcome {
    match outcome {
        Outcome::Missing(why) => Outcome::Missing(why),
        Outcome::Measured(mut sample) => {
            let all = sample.operations_with_warm_up;
            sample.allocations = Some(count as f64 / all as f64);
            Outcome::Measured(sample)
        }
    }
}
